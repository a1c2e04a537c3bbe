package sqs

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// attribute is a message attribute; StringValue or BinaryValue is used as DataType says.
type attribute struct {
	DataType    string
	StringValue string `json:",omitempty"`
	BinaryValue []byte `json:",omitempty"`
}

var attributeName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// checkAttributes holds message attributes against the rules: at most ten, names without a reserved prefix, a type
// of String, Number or Binary with an optional label, and a value.
func checkAttributes(attrs map[string]attribute) error {
	if len(attrs) > 10 {
		return invalidParameter("Number of message attributes [%d] exceeds the allowed maximum [10].", len(attrs))
	}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		lower := strings.ToLower(name)
		reserved := strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.")
		if reserved || len(name) > 256 || !attributeName.MatchString(name) {
			return invalidParameter("Message (user) attribute name '%s' is invalid.", name)
		}
		if err := attrs[name].check(name); err != nil {
			return err
		}
	}
	return nil
}

func (a attribute) check(name string) error {
	kind, _, _ := strings.Cut(a.DataType, ".")
	switch kind {
	case "Binary":
		if len(a.BinaryValue) == 0 {
			return emptyAttribute(name, kind)
		}
	case "String", "Number":
		if a.StringValue == "" {
			return emptyAttribute(name, kind)
		}
		if _, err := strconv.ParseFloat(a.StringValue, 64); kind == "Number" && err != nil {
			return invalidParameter("Can't cast the value of message (user) attribute '%s' to a number.", name)
		}
		if !allowedText(a.StringValue) {
			return invalidParameter("Invalid characters found in the value of message (user) attribute '%s'.", name)
		}
	default:
		return invalidParameter("The type of message (user) attribute '%s' is invalid. You must use only the following supported type prefixes: Binary, Number, String.", name)
	}
	return nil
}

func emptyAttribute(name, kind string) error {
	return invalidParameter("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", name, kind)
}

// allowedText says whether SQS takes all characters of s, by the table in the API reference.
func allowedText(s string) bool {
	for _, r := range s {
		switch {
		case r == 0x9, r == 0xA, r == 0xD, r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
		default:
			return false
		}
	}
	return true
}

func md5Hex(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is the digest of the attributes in the developer guide's encoding: by name, each of name, type and
// value with its length before it, the value also with 1 for text or 2 for bytes. Without attributes it is empty.
func md5OfAttributes(attrs map[string]attribute) string {
	if len(attrs) == 0 {
		return ""
	}
	var b []byte
	put := func(v string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		a := attrs[name]
		put(name)
		put(a.DataType)
		if strings.HasPrefix(a.DataType, "Binary") {
			b = append(b, 2)
			put(string(a.BinaryValue))
		} else {
			b = append(b, 1)
			put(a.StringValue)
		}
	}
	return md5Hex(b)
}

// pick keeps the attributes a receiver asked for: by name, by a prefix written "name.*", or all.
func pick(attrs map[string]attribute, wanted []string) map[string]attribute {
	out := map[string]attribute{}
	for name, a := range attrs {
		for _, w := range wanted {
			prefix, isPrefix := strings.CutSuffix(w, ".*")
			if w == "All" || w == name || isPrefix && strings.HasPrefix(name, prefix) {
				out[name] = a
			}
		}
	}
	return out
}
