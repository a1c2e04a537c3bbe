package dataset

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"pintu/internal/fault"
)

// Binding is a schema laid over the header of one file: which cell belongs to which field. One made by
// BindNames finds fields by the names of members instead. It is safe for concurrent use.
type Binding struct {
	schema *Schema
	at     []int        // per field: its cell, -1 when the file has no such column
	width  int          // cells of the header
	json   *jsonBinding // of a Binding by names
}

// Warning tells of something tolerated in a file. Details are for machines.
type Warning struct {
	Code    fault.Code
	Message string
	Details map[string]any
}

// maxNamed bounds how many column names stand in a message, and maxListed how many in details.
const (
	maxNamed  = 10
	maxListed = 100
)

// Bind matches a header with the schema, by name: without regard to surrounding white space and
// invisible characters, in NFC, with regard to case. looksLike is another delimiter that the header
// seems to use, or empty. The error is a *fault.Error that refuses the file: HEADER_INVALID when no
// column is known or fieldsMatch forbids what was found, DUPLICATE_COLUMNS, MISSING_COLUMNS. The
// columns that rejected.csv adds are left out of everything.
func (s *Schema) Bind(header []string, looksLike string) (*Binding, []Warning, error) {
	b := &Binding{schema: s, at: make([]int, len(s.columns)), width: len(header)}
	for i := range b.at {
		b.at[i] = -1
	}
	var order []int // fields in the order of the header
	var unknown []string
	for cell, raw := range header {
		name := foldName(raw)
		field, known := s.lookup(name)
		switch {
		case known && b.at[field] >= 0:
			return nil, nil, fault.New(fault.DuplicateColumns, "%s stands in column %d and in column %d", clip(name), b.at[field]+1, cell+1).
				With("columns", []int{b.at[field] + 1, cell + 1})
		case known:
			b.at[field] = cell
			order = append(order, field)
		case name != "" && !slices.Contains(reserved, name):
			unknown = append(unknown, name)
		}
	}
	if len(order) == 0 {
		return nil, nil, s.headerInvalid(header, looksLike)
	}
	if err := s.checkMissing(b, unknown); err != nil {
		return nil, nil, err
	}
	if err := s.checkMatch(order, unknown); err != nil {
		return nil, nil, err
	}
	return b, ignored(unknown), nil
}

func ignored(unknown []string) []Warning {
	if len(unknown) == 0 {
		return nil
	}
	listed := unknown[:min(len(unknown), maxListed)]
	return []Warning{{fault.ColumnIgnored, clip("columns that the dataset does not have are ignored: " + list(unknown)),
		map[string]any{"columns": listed, "count": len(unknown)}}}
}

// lookup finds a field by a clean name; where that fails, no-break spaces inside the name may be
// ordinary spaces or nothing.
func (s *Schema) lookup(name string) (int, bool) {
	if i, ok := s.byName[name]; ok {
		return i, true
	}
	if !strings.ContainsRune(name, '\u00a0') {
		return 0, false
	}
	if i, ok := s.byName[strings.ReplaceAll(name, "\u00a0", " ")]; ok {
		return i, true
	}
	i, ok := s.byName[strings.ReplaceAll(name, "\u00a0", "")]
	return i, ok
}

func (s *Schema) headerInvalid(header []string, looksLike string) error {
	names := slices.DeleteFunc(slices.Clone(header), func(name string) bool { return cleanName(name) == "" })
	switch {
	case len(names) == 0:
		return fault.New(fault.HeaderInvalid, "the header has no names")
	case looksLike != "":
		return fault.New(fault.HeaderInvalid, "%s, expected %d; looks like %s", count(len(header)), len(s.columns), looksLike).
			With("looks_like", looksLike)
	}
	return fault.New(fault.HeaderInvalid, "%s",
		clip(fmt.Sprintf("no column of the dataset is in the header: expected %s; found %s", s.names(), list(names))))
}

// checkMissing demands the columns without which no row could pass.
func (s *Schema) checkMissing(b *Binding, unknown []string) error {
	var missing []string
	for i, c := range s.columns {
		needed := c.required || c.inKey || s.fieldsMatch == "exact" || s.fieldsMatch == "equal" || s.fieldsMatch == "subset"
		if needed && b.at[i] < 0 {
			missing = append(missing, c.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	message := list(missing) + " missing"
	if len(unknown) > 0 {
		message += ", found " + list(unknown)
	}
	return fault.New(fault.MissingColumns, "%s", clip(message)).
		With("missing", missing[:min(len(missing), maxListed)]).With("found", unknown[:min(len(unknown), maxListed)])
}

// checkMatch enforces the rest of fieldsMatch.
func (s *Schema) checkMatch(order []int, unknown []string) error {
	switch {
	case len(unknown) > 0 && (s.fieldsMatch == "exact" || s.fieldsMatch == "equal" || s.fieldsMatch == "superset"):
		return fault.New(fault.HeaderInvalid, "%s",
			clip(fmt.Sprintf("fieldsMatch %s allows no other columns, found %s", s.fieldsMatch, list(unknown))))
	case s.fieldsMatch == "exact" && !slices.IsSorted(order):
		return fault.New(fault.HeaderInvalid, "%s", clip("fieldsMatch exact needs the columns in the order of the schema: "+s.names()))
	}
	return nil
}

func (s *Schema) names() string {
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = c.name
	}
	return list(names)
}

func count(columns int) string {
	if columns == 1 {
		return "1 column"
	}
	return fmt.Sprintf("%d columns", columns)
}

// list names the first columns and says how many more there are.
func list(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// cleanName takes away what nobody sees: white space at the ends (no-break spaces too), zero-width
// characters and byte order marks anywhere.
func cleanName(name string) string {
	return strings.TrimFunc(strings.Map(visible, name), unicode.IsSpace)
}

func visible(r rune) rune {
	switch r {
	case '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff':
		return -1
	}
	return r
}

// foldName is the form in which names are compared.
func foldName(name string) string { return norm.NFC.String(cleanName(name)) }
