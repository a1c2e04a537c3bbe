package httpapi

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// object reads the members of one JSON object and knows which of them nobody asked for. A member that is
// null is absent, and stands for its default.
type object struct {
	path     string // "" for the body itself
	members  map[string]any
	taken    map[string]bool
	problems *problems
}

func (o *object) at(name string) string { return strings.TrimPrefix(o.path+"."+name, ".") }

func (o *object) bad(name, reason string, args ...any) { o.problems.add(o.at(name), reason, args...) }

func (o *object) take(name string) any {
	o.taken[name] = true
	return o.members[name]
}

// close reports the members that nobody asked for, in order of their names.
func (o *object) close() {
	var unknown []string
	for name := range o.members {
		if !o.taken[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		o.bad(clip(name), "unknown field")
	}
}

// text takes a string of 1 to most characters without control characters; "" when it is absent.
func (o *object) text(name string, most int) string {
	v := o.take(name)
	if v == nil {
		return ""
	}
	s, ok := v.(string)
	switch n := utf8.RuneCountInString(s); {
	case !ok:
		o.bad(name, "must be a string, is %s", kindOf(v))
		return ""
	case n < 1 || n > most:
		o.bad(name, "must have 1 to %d characters, has %d", most, n)
	case strings.ContainsFunc(s, unicode.IsControl):
		o.bad(name, "holds a control character")
	}
	return s
}

// character takes a text of one character. It may be a tab, which no other text may hold.
func (o *object) character(name string) string {
	if o.members[name] == "\t" {
		o.take(name)
		return "\t"
	}
	return o.text(name, 1)
}

// required takes a string that must be there.
func (o *object) required(name string, most int) string {
	if o.members[name] == nil {
		o.take(name)
		o.bad(name, "is required")
		return ""
	}
	return o.text(name, most)
}

// only takes a choice that has one value so far. later are values that will exist.
func (o *object) only(name, supported string, later ...string) string {
	v := o.take(name)
	s, ok := v.(string)
	switch {
	case v == nil || s == supported && ok:
	case !ok:
		o.bad(name, "must be a string, is %s", kindOf(v))
	case slices.Contains(later, s):
		o.bad(name, "%s is not available yet; supported: %s", s, supported)
	default:
		o.bad(name, "%q is not known; supported: %s", clip(s), supported)
	}
	return supported
}

// unavailable takes a member that must be null until its feature exists.
func (o *object) unavailable(name, reason string) {
	if o.take(name) != nil {
		o.bad(name, "%s", reason)
	}
}

func (o *object) flag(name string) bool {
	v := o.take(name)
	b, ok := v.(bool)
	if !ok && v != nil {
		o.bad(name, "must be true or false, is %s", kindOf(v))
	}
	return b
}

// whole takes an integer from low to high. 1.0 and 1e3 are integers too, as in JSON Schema.
func (o *object) whole(name string, fallback, low, high int64) int64 {
	v := o.take(name)
	if v == nil {
		return fallback
	}
	number, ok := v.(json.Number)
	if !ok {
		o.bad(name, "must be a whole number, is %s", kindOf(v))
		return fallback
	}
	n, ok := wholeNumber(number)
	switch {
	case !ok:
		o.bad(name, "must be a whole number")
	case n < low || n > high:
		o.bad(name, "must be from %d to %d", low, high)
	}
	return n
}

func wholeNumber(number json.Number) (int64, bool) {
	if n, err := number.Int64(); err == nil {
		return n, true
	}
	const exact = 1 << 53 // beyond it a float skips integers
	f, err := number.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false
	}
	return int64(f), true
}

// decimal takes a number from low to high; nil when it is absent.
func (o *object) decimal(name string, low, high float64) *float64 {
	v := o.take(name)
	if v == nil {
		return nil
	}
	number, ok := v.(json.Number)
	if !ok {
		o.bad(name, "must be a number, is %s", kindOf(v))
		return nil
	}
	f, err := number.Float64()
	if err != nil || f < low || f > high {
		o.bad(name, "must be from %s to %s", strconv.FormatFloat(low, 'f', -1, 64), strconv.FormatFloat(high, 'f', -1, 64))
	}
	return &f
}

// object opens a member that is an object; without members when it is absent.
func (o *object) object(name string) *object {
	v := o.take(name)
	inner := &object{path: o.at(name), members: map[string]any{}, taken: map[string]bool{}, problems: o.problems}
	members, ok := v.(map[string]any)
	switch {
	case ok:
		inner.members = members
	case v != nil:
		o.bad(name, "must be an object, is %s", kindOf(v))
	}
	return inner
}

// opaque takes an object that is kept as it is, in canonical form: members in order of their names, no
// white space. {} when it is absent.
func (o *object) opaque(name string, most int) json.RawMessage {
	v := o.take(name)
	if v == nil {
		return json.RawMessage("{}")
	}
	if _, ok := v.(map[string]any); !ok {
		o.bad(name, "must be an object, is %s", kindOf(v))
		return json.RawMessage("{}")
	}
	text, err := encode(v)
	if err != nil || len(text) > most {
		o.bad(name, "must be at most %d bytes of JSON, is %d", most, len(text))
	}
	return text
}
