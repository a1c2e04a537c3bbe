package dataset

import (
	"errors"
	"strings"

	"pintu/internal/rowio"
)

// dialect takes the CSV dialect. The delimiter and the optional characters stay undeclared when they
// are: rowio finds a delimiter then. Whatever has one default gets it.
func (p *parser) dialect(d *Definition, n node, present bool) {
	yes := true
	d.Dialect = rowio.Dialect{QuoteChar: `"`, DoubleQuote: &yes, Header: &yes}
	if !present {
		return
	}
	before := len(p.problems)
	o := p.object(n, "dialect")
	doubleQuote, header := o.flag("doubleQuote", true), o.flag("header", true)
	d.Dialect = rowio.Dialect{
		Delimiter:        o.text("delimiter", ""),
		QuoteChar:        o.text("quoteChar", `"`),
		DoubleQuote:      &doubleQuote,
		EscapeChar:       o.text("escapeChar", ""),
		SkipInitialSpace: o.flag("skipInitialSpace", false),
		CommentChar:      o.text("commentChar", ""),
		Header:           &header,
	}
	if d.Dialect.QuoteChar == "" {
		d.Dialect.QuoteChar = `"`
	}
	o.refuseRest("is not supported")
	if len(p.problems) == before {
		p.dialectFaults(d.Dialect.Validate())
	}
}

// dialectFaults files each joined fault under its property, which stands before the colon.
func (p *parser) dialectFaults(err error) {
	if err == nil {
		return
	}
	faults := []error{err}
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		faults = joined.Unwrap()
	}
	for _, fault := range faults {
		property, reason, _ := strings.Cut(fault.Error(), ": ")
		p.add("dialect."+property, "%s", reason)
	}
}

func (d *Definition) dialectNode() node {
	c := d.Dialect
	members := []member{
		{"quoteChar", stringOf(c.QuoteChar)},
		{"doubleQuote", boolNode(*c.DoubleQuote)},
		{"skipInitialSpace", boolNode(c.SkipInitialSpace)},
		{"header", boolNode(*c.Header)},
	}
	for _, declared := range []struct{ name, value string }{{"delimiter", c.Delimiter}, {"escapeChar", c.EscapeChar}, {"commentChar", c.CommentChar}} {
		if declared.value != "" {
			members = append(members, member{declared.name, stringOf(declared.value)})
		}
	}
	return node{kind: objectNode, members: members}
}
