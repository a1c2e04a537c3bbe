package rowio

import (
	"errors"
	"fmt"
)

// Dialect is what people declare about a CSV file, with the property names of
// the Frictionless CSV dialect. Zero values mean "not declared".
type Dialect struct {
	Delimiter        string `json:"delimiter,omitempty"`        // one ASCII character; not declared: a sep= line, else guessed, else ","
	QuoteChar        string `json:"quoteChar,omitempty"`        // one ASCII character; default `"`
	DoubleQuote      *bool  `json:"doubleQuote,omitempty"`      // "" inside quotes is one quote; default true
	EscapeChar       string `json:"escapeChar,omitempty"`       // one ASCII character; default none
	SkipInitialSpace bool   `json:"skipInitialSpace,omitempty"` // spaces (U+0020) before a cell are dropped
	CommentChar      string `json:"commentChar,omitempty"`      // lines that start with it are skipped; default none
	Header           *bool  `json:"header,omitempty"`           // default true
}

// Validate says by name what cannot be read. All faults are joined.
func (d Dialect) Validate() error {
	r := d.resolved()
	errs := []error{
		checkChar("delimiter", r.Delimiter, false),
		checkChar("quoteChar", r.QuoteChar, false),
		checkChar("escapeChar", r.EscapeChar, true),
		checkChar("commentChar", r.CommentChar, true),
		checkDistinct(r),
	}
	if !*r.DoubleQuote && r.EscapeChar == "" {
		errs = append(errs, errors.New("doubleQuote: false needs an escapeChar"))
	}
	if r.SkipInitialSpace && (r.Delimiter == " " || r.QuoteChar == " " || r.EscapeChar == " ") {
		errs = append(errs, errors.New("skipInitialSpace: a space is declared as another character"))
	}
	return errors.Join(errs...)
}

func checkChar(name, value string, optional bool) error {
	switch {
	case value == "" && optional:
		return nil
	case len(value) != 1 || value[0] >= 0x80:
		return fmt.Errorf("%s: %q is not one ASCII character", name, value)
	case value == "\r" || value == "\n" || value == "\x00" || isAlphanumeric(value[0]):
		return fmt.Errorf("%s: %q cannot be used", name, value)
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func checkDistinct(d Dialect) error {
	seen := map[string]string{}
	for _, c := range []struct{ name, value string }{
		{"delimiter", d.Delimiter}, {"quoteChar", d.QuoteChar},
		{"escapeChar", d.EscapeChar}, {"commentChar", d.CommentChar},
	} {
		if c.value == "" {
			continue
		}
		if other, taken := seen[c.value]; taken {
			return fmt.Errorf("%s: %q is also the %s", c.name, c.value, other)
		}
		seen[c.value] = c.name
	}
	return nil
}

// resolved fills in the defaults. An escape character that is the quote itself
// is another way to write doubleQuote.
func (d Dialect) resolved() Dialect {
	yes := true
	if d.Delimiter == "" {
		d.Delimiter = ","
	}
	if d.QuoteChar == "" {
		d.QuoteChar = `"`
	}
	if d.EscapeChar == d.QuoteChar {
		d.EscapeChar, d.DoubleQuote = "", &yes
	}
	if d.DoubleQuote == nil {
		d.DoubleQuote = &yes
	}
	if d.Header == nil {
		d.Header = &yes
	}
	return d
}
