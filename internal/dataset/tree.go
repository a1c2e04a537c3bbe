package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a definition; the deepest legal place is an annotation's content.
const maxDepth = 32

// node is one JSON value as it was written: numbers keep every digit, members keep their order, and
// a name that stands twice in one object is refused, because either reading would be a guess.
type node struct {
	kind    byte   // one of the node kinds below
	text    string // of a string, or the literal of a number
	members []member
	items   []node
}

type member struct {
	name  string
	value node
}

const (
	nullNode   = 'z'
	trueNode   = 't'
	falseNode  = 'f'
	stringNode = 's'
	numberNode = 'n'
	arrayNode  = 'a'
	objectNode = 'o'
)

// kindNames are the words for people.
var kindNames = map[byte]string{nullNode: "null", trueNode: "a boolean", falseNode: "a boolean", stringNode: "a string",
	numberNode: "a number", arrayNode: "an array", objectNode: "an object"}

// readTree reads exactly one JSON value.
func readTree(body []byte) (node, error) {
	if !utf8.Valid(body) {
		return node{}, errors.New("not UTF-8")
	}
	if !json.Valid(body) {
		var ignored any
		return node{}, json.Unmarshal(body, &ignored)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return readNode(dec, 0)
}

func readNode(dec *json.Decoder, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		return node{}, err
	}
	switch v := token.(type) {
	case bool:
		if v {
			return node{kind: trueNode}, nil
		}
		return node{kind: falseNode}, nil
	case string:
		return node{kind: stringNode, text: v}, nil
	case json.Number:
		return node{kind: numberNode, text: v.String()}, nil
	case json.Delim:
		if v == '[' {
			return readArray(dec, depth)
		}
		return readObject(dec, depth)
	default:
		return node{kind: nullNode}, nil
	}
}

func readArray(dec *json.Decoder, depth int) (node, error) {
	n := node{kind: arrayNode}
	for dec.More() {
		item, err := readNode(dec, depth+1)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
	_, err := dec.Token()
	return n, err
}

func readObject(dec *json.Decoder, depth int) (node, error) {
	n := node{kind: objectNode}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return n, err
		}
		name, _ := token.(string)
		if seen[name] {
			return n, fmt.Errorf("the name %q stands twice in one object", name)
		}
		seen[name] = true
		value, err := readNode(dec, depth+1)
		if err != nil {
			return n, err
		}
		n.members = append(n.members, member{name, value})
	}
	_, err := dec.Token()
	return n, err
}

// append writes the node in canonical form: no white space, members in order of their names, number
// literals as they were written.
func (n node) append(dst []byte) []byte {
	switch n.kind {
	case stringNode:
		return appendJSONString(dst, n.text)
	case numberNode:
		return append(dst, n.text...)
	case trueNode:
		return append(dst, "true"...)
	case falseNode:
		return append(dst, "false"...)
	case nullNode:
		return append(dst, "null"...)
	case arrayNode:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	default:
		return appendMembers(dst, n.members)
	}
}

// appendMembers writes an object, its members in order of their names.
func appendMembers(dst []byte, members []member) []byte {
	sorted := append([]member(nil), members...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].name < sorted[j].name })
	dst = append(dst, '{')
	for i, m := range sorted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, m.name)
		dst = append(dst, ':')
		dst = m.value.append(dst)
	}
	return append(dst, '}')
}

// appendJSONString writes text as a JSON string with the fewest escapes JSON allows, which is what
// JavaScript's JSON.stringify writes: keys of several fields are made with it and never change.
func appendJSONString[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		default:
			dst = appendControl(dst, c)
		}
	}
	return append(dst, '"')
}

func appendControl(dst []byte, c byte) []byte {
	if i := strings.IndexByte("\b\t\n\f\r", c); i >= 0 {
		return append(dst, '\\', "btnfr"[i])
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

func stringsNode(texts []string) node {
	n := node{kind: arrayNode}
	for _, text := range texts {
		n.items = append(n.items, node{kind: stringNode, text: text})
	}
	return n
}

func stringOf(text string) node { return node{kind: stringNode, text: text} }
