package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// readQuery refuses parameters that the route does not know: a filter that is not applied would give an
// answer to another question.
func readQuery(c *call, _ http.ResponseWriter, r route) error {
	var bad problems
	values, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		bad.add("", "the query is not URL-encoded")
		return bad.err()
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case !slices.Contains(r.query, name):
			bad.add(clip(strings.ToValidUTF8(name, "\uFFFD")), "unknown parameter")
		case len(values[name]) > 1:
			bad.add(name, "stands more than once")
		case !utf8.ValidString(values.Get(name)):
			bad.add(name, "is not UTF-8")
		}
	}
	c.params = params{values: values}
	return bad.err()
}

// params reads query parameters and collects everything that is wrong with them.
type params struct {
	values   url.Values
	problems problems
}

func (p *params) text(name string) string { return p.values.Get(name) }

// oneOf takes a parameter with known values; "" when it is absent.
func (p *params) oneOf(name string, known ...string) string {
	v := p.values.Get(name)
	if p.values.Has(name) && !slices.Contains(known, v) {
		p.problems.add(name, "must be one of %s", strings.Join(known, ", "))
	}
	return v
}

func (p *params) time(name string) time.Time {
	if !p.values.Has(name) {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, p.values.Get(name))
	if err != nil {
		p.problems.add(name, "must be a time such as 2026-07-27T10:15:30Z")
	}
	return t
}

// limit takes the page size. A page may hold fewer items and still not be the last.
func (p *params) limit(most int) int {
	const usual = 100
	if !p.values.Has("limit") {
		return min(usual, most)
	}
	n, err := strconv.Atoi(p.values.Get("limit"))
	if err != nil || n < 1 || n > most {
		p.problems.add("limit", "must be from 1 to %d", most)
	}
	return n
}

// wait takes how many seconds the answer may be held: ?wait=20s.
func (p *params) wait() int {
	if !p.values.Has("wait") {
		return 0
	}
	digits, ok := strings.CutSuffix(p.values.Get("wait"), "s")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > maxWaitSeconds || strings.HasPrefix(digits, "+") {
		p.problems.add("wait", "must be whole seconds from 0s to %ds", maxWaitSeconds)
		return 0
	}
	return n
}
