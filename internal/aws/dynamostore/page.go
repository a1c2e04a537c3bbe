package dynamostore

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"pintu/internal/fault"
)

// envelopeBytes are set aside for what stands around the entries of a page: names, request data, and a
// cursor that holds a key of 1,024 bytes.
const envelopeBytes = 8 << 10

// pageRoom says whether one more entry fits a page. The body of an answer is a JSON string inside
// Lambda's reply, so every byte counts as it is escaped again there.
type pageRoom struct {
	entries, bytes int // left
	used           bool
}

func newPageRoom(limit, maxBytes int) pageRoom {
	return pageRoom{entries: limit, bytes: maxBytes - envelopeBytes}
}

// take makes room for the entry. The first entry always fits: a page without entries would not move on.
func (p *pageRoom) take(entry json.Marshaler) (bool, error) {
	body, err := json.Marshal(entry)
	if err != nil {
		return false, err
	}
	size := escapedLen(body) + 1 // and a comma
	if p.used && (p.entries < 1 || size > p.bytes) {
		return false, nil
	}
	p.entries--
	p.bytes -= size
	p.used = true
	return true, nil
}

// full tells that no entry would fit, however small.
func (p *pageRoom) full() bool { return p.used && (p.entries < 1 || p.bytes < 1) }

// escapedLen is the length of JSON text inside a JSON string. json.Marshal leaves no control
// characters, so quotes and backslashes are all that grows.
func escapedLen(b []byte) int {
	return len(b) + bytes.Count(b, []byte{'"'}) + bytes.Count(b, []byte{'\\'})
}

// encodeCursor makes a page token that holds a position and nothing else: the partition always comes
// from the caller's token and the path.
func encodeCursor(position any) (string, error) {
	b, err := json.Marshal(position)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// decodeCursor reads a page token into position; an empty one leaves it as it is.
func decodeCursor(cursor string, position any) error {
	if cursor == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(b, position) != nil {
		return badCursor()
	}
	if again, err := encodeCursor(position); err != nil || again != cursor {
		return badCursor() // other fields, other spelling: not one of ours
	}
	return nil
}

func badCursor() error {
	return fault.New(fault.InvalidRequest, "the cursor is not one that a page of this list ended with").
		With("fields", []map[string]string{{"path": "cursor", "reason": "not a cursor of this list"}})
}
