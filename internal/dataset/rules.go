package dataset

import (
	"slices"
	"strings"
)

// Rule is a default rule of imports: its name in a definition and the values it may have, the default
// first. The first Available of them are kept by imports so far, the others are refused by name.
type Rule struct {
	Name      string
	Values    []string
	Available int
}

// The rules. Available is the one switch for the values that imports do not keep yet.
var (
	OnConflictRule = Rule{"on_conflict", []string{"update", "skip", "reject", "if_unchanged"}, 4}
	DuplicatesRule = Rule{"duplicates", []string{"reject", "last_wins"}, 2}
)

// Supported returns the values that a definition may name.
func (r Rule) Supported() []string { return r.Values[:r.Available] }

func (p *parser) rule(o *object, r Rule) string {
	before := len(p.problems)
	value := o.text(r.Name, r.Values[0])
	switch {
	case len(p.problems) > before:
		p.badRequest = true
	case slices.Contains(r.Supported(), value):
	case slices.Contains(r.Values, value):
		p.add(o.at(r.Name), "%s is not available yet; supported: %s", value, strings.Join(r.Supported(), ", "))
	default:
		p.add(o.at(r.Name), "%s is not known; supported: %s", clip(value), strings.Join(r.Supported(), ", "))
	}
	return value
}
