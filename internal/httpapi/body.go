package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"pintu/internal/fault"
)

// readBody checks size and media type and reads the body.
func readBody(c *call, w http.ResponseWriter, r route) error {
	if r.maxBody == noBody {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, c.Body, r.maxBody))
	if _, larger := errors.AsType[*http.MaxBytesError](err); larger {
		return fault.New(fault.PayloadTooLarge, "the body is larger than %d bytes", r.maxBody).With("limit_bytes", r.maxBody)
	}
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "the body could not be read to its end; send it again").With("fields", []problem{{"", "ends early"}})
	}
	if len(body) > 0 && !isJSON(c.Header) {
		return fault.New(fault.UnsupportedMediaType, "send the body as application/json, UTF-8 and not compressed").With("supported", []string{"application/json"})
	}
	c.body = body
	return nil
}

func isJSON(h http.Header) bool {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return false
	}
	charset, given := params["charset"]
	encoding := h.Get("Content-Encoding")
	return (!given || strings.EqualFold(charset, "utf-8")) && (encoding == "" || strings.EqualFold(encoding, "identity"))
}

// problem is one thing wrong with a request: the place as a path (file.size_bytes, metadata, limit), and why.
type problem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// problems collects everything that is wrong, so that a client can mend it all at once.
type problems []problem

func (p *problems) add(path, reason string, args ...any) {
	*p = append(*p, problem{path, fmt.Sprintf(reason, args...)})
}

// err is nil when nothing is wrong.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	first := strings.TrimSpace(p[0].Path + " " + p[0].Reason)
	if len(p) > 1 {
		first = fmt.Sprintf("%s (and %d more in details.fields)", first, len(p)-1)
	}
	return fault.New(fault.InvalidRequest, "the request cannot be read: %s", first).With("fields", []problem(p))
}

// readObject opens a body as one JSON object. An empty body is an object without members.
func (p *problems) readObject(body []byte) *object {
	o := &object{members: map[string]any{}, taken: map[string]bool{}, problems: p}
	if len(body) == 0 {
		return o
	}
	v, err := parseJSON(body)
	if err != nil {
		p.add("", "%s", err)
		return o
	}
	members, ok := v.(map[string]any)
	if !ok {
		p.add("", "must be an object, is %s", kindOf(v))
		return o
	}
	o.members = members
	return o
}

// maxDepth bounds nesting; metadata is the only place where a client can nest.
const maxDepth = 32

// parseJSON reads exactly one JSON value. Numbers keep their digits, and a name that stands twice in one
// object is refused, because either reading would be a guess.
func parseJSON(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("is not UTF-8")
	}
	if !json.Valid(body) {
		var syntax *json.SyntaxError
		if err := json.Unmarshal(body, new(any)); errors.As(err, &syntax) {
			return nil, fmt.Errorf("is not JSON: %w at byte %d", err, syntax.Offset)
		}
		return nil, errors.New("is not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return parseValue(dec, 0)
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		return parseArray(dec, depth)
	case json.Delim('{'):
		return parseObject(dec, depth)
	}
	return token, nil
}

func parseArray(dec *json.Decoder, depth int) (any, error) {
	items := []any{}
	for dec.More() {
		item, err := parseValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := dec.Token()
	return items, err
}

func parseObject(dec *json.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // the grammar was checked before
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("holds the name %q twice in one object", clip(name))
		}
		if members[name], err = parseValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return members, err
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}

// clip bounds a text of the client's before it goes into a message.
func clip(text string) string {
	const most = 80
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
