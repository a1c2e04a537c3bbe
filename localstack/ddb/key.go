package ddb

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// Limits of key values in bytes.
const (
	maxHashKeyBytes = 2048
	maxSortKeyBytes = 1024
)

// keyPart is one attribute of a key and its type: S, N or B.
type keyPart struct {
	name string
	kind kind
}

// keySchema is a partition key and perhaps a sort key, which has no name when there is none.
type keySchema struct{ hash, sort keyPart }

func (k keySchema) parts() []keyPart {
	if k.sort.name == "" {
		return []keyPart{k.hash}
	}
	return []keyPart{k.hash, k.sort}
}

func (k keySchema) has(name string) bool {
	return name == k.hash.name || name == k.sort.name
}

// encode gives the sort position of an item whose key attributes are there and of the right type: four bytes of the
// partition key's hash, so that a scan meets partitions in no useful order and segments are ranges, then the values. No
// encoding of one schema is a prefix of another.
func (k keySchema) encode(it item) string {
	b := appendPartition(make([]byte, 0, 64), it[k.hash.name])
	if k.sort.name != "" {
		b = appendKeyValue(b, it[k.sort.name])
	}
	return string(b)
}

// appendPartition begins the encoded keys of every item with this partition key.
func appendPartition(b []byte, hash value) []byte {
	start := len(b)
	b = appendKeyValue(append(b, 0, 0, 0, 0), hash)
	h := fnv.New32a()
	h.Write(b[start+4:])
	binary.BigEndian.PutUint32(b[start:], h.Sum32())
	return b
}

// appendKeyValue ends text and binary with 00 00, writing 00 FF for a zero byte inside.
func appendKeyValue(b []byte, v value) []byte {
	if n, ok := v.(number); ok {
		return append(b, n.key()...)
	}
	return append(appendKeyPrefix(b, v), 0, 0)
}

// appendKeyPrefix begins the encoding of every text or binary that begins with v.
func appendKeyPrefix(b []byte, v value) []byte {
	var s string
	switch v := v.(type) {
	case text:
		s = string(v)
	case binaryValue:
		s = string(v)
	}
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			return append(b, s...)
		}
		b = append(b, s[:i]...)
		b = append(b, 0, 0xff)
		s = s[i+1:]
	}
}

// after is the least key that is greater than every key beginning with prefix; empty when there is none.
func after(prefix string) string {
	b := []byte(prefix)
	for len(b) > 0 {
		if b[len(b)-1]++; b[len(b)-1] != 0 {
			return string(b)
		}
		b = b[:len(b)-1]
	}
	return ""
}

// check wants exactly the key's attributes in a Key parameter.
func (k keySchema) check(key item) error {
	parts := k.parts()
	if len(key) != len(parts) {
		return invalid("The provided key element does not match the schema")
	}
	for _, part := range parts {
		v := key[part.name]
		if v == nil || v.kind() != part.kind {
			return invalid("The provided key element does not match the schema")
		}
	}
	return k.checkValues(key)
}

// checkItem wants the key's attributes among those of a new item.
func (k keySchema) checkItem(it item) error {
	for _, part := range k.parts() {
		v := it[part.name]
		if v == nil {
			return invalidValue("Missing the key %s in the item", part.name)
		}
		if v.kind() != part.kind {
			return invalidValue("Type mismatch for key %s expected: %s actual: %s", part.name, part.kind, v.kind())
		}
	}
	return k.checkValues(it)
}

func (k keySchema) checkValues(it item) error {
	for _, part := range k.parts() {
		if what := emptyKey(it[part.name]); what != "" {
			return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", what, part.name)
		}
	}
	if sizeOf(it[k.hash.name]) > maxHashKeyBytes {
		return invalidValue("Size of hashkey has exceeded the maximum size limit of2048 bytes")
	}
	if k.sort.name != "" && sizeOf(it[k.sort.name]) > maxSortKeyBytes {
		return invalidValue("Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}

// emptyKey names the type of an empty key value; it is "" for one that is not empty.
func emptyKey(v value) string {
	switch v {
	case text(""):
		return "string"
	case binaryValue(""):
		return "binary"
	}
	return ""
}

// of picks the key's attributes out of an item.
func (k keySchema) of(it item) item {
	key := item{k.hash.name: it[k.hash.name]}
	if k.sort.name != "" {
		key[k.sort.name] = it[k.sort.name]
	}
	return key
}
