package httpapi

import (
	"net/http"

	"pintu/internal/access"
)

const (
	maxPageSize = 1000
	// maxPageBytes bounds a page after JSON escaping, so that what Lambda has to send stays below 6 MB.
	maxPageBytes = 4_000_000
)

// pageLimit is the largest page the caller may ask for.
func pageLimit(c access.Caller) int { return min(maxPageSize, c.Limits.MaxPageSize) }

// page answers with {"<plural>":[…],"next_cursor":…}. fetch reads at most limit items; it is asked again
// for fewer until the answer fits, since a cursor can only be made by whoever read the items.
func page[T any](plural string, limit int, fetch func(limit int) (items []T, next string, err error)) (reply, error) {
	for {
		items, next, err := fetch(limit)
		if err != nil {
			return reply{}, err
		}
		if items == nil {
			items = []T{}
		}
		out, err := answer(http.StatusOK, map[string]any{plural: items, "next_cursor": text(next)})
		if err != nil {
			return reply{}, err
		}
		size := escapedBytes(out.body)
		if size <= maxPageBytes || len(items) <= 1 {
			return out, nil
		}
		limit = max(1, len(items)*maxPageBytes/size*9/10)
	}
}

// escapedBytes is how long a body becomes inside Lambda's reply, which is JSON and holds it as a string:
// Go writes < > & as six bytes there.
func escapedBytes(body []byte) int {
	n := 2
	for _, b := range body {
		switch {
		case b == '"' || b == '\\' || b == '\n' || b == '\r' || b == '\t':
			n += 2
		case b < 0x20 || b == '<' || b == '>' || b == '&':
			n += 6
		default:
			n++
		}
	}
	return n
}
