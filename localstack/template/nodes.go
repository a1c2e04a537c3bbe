package template

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// normalise turns CloudFormation's short tags into their long form, in place: !Sub x becomes {Fn::Sub: x}. Lines stay.
func normalise(n *yaml.Node) {
	for _, c := range n.Content {
		normalise(c)
	}
	if n.Tag == "" || n.Tag[0] != '!' || strings.HasPrefix(n.Tag, "!!") {
		return
	}
	name := n.Tag[1:]
	value := *n
	value.Style &^= yaml.TaggedStyle
	value.Tag = map[yaml.Kind]string{yaml.ScalarNode: "!!str", yaml.SequenceNode: "!!seq", yaml.MappingNode: "!!map"}[n.Kind]
	if name == "GetAtt" && value.Kind == yaml.ScalarNode {
		value = dotted(value)
	}
	if name != "Ref" && name != "Condition" {
		name = "Fn::" + name
	}
	*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: value.Line, Column: value.Column,
		Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: value.Line}, &value}}
}

// dotted splits the scalar form of GetAtt at its first dot.
func dotted(n yaml.Node) yaml.Node {
	resource, attribute, _ := strings.Cut(n.Value, ".")
	return yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line,
		Content: []*yaml.Node{scalar(resource, n.Line), scalar(attribute, n.Line)}}
}

func scalar(value string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: line}
}

// lookup gives the value of a key of a mapping, or nil.
func lookup(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// pairs calls f for each key and value of a mapping until one fails; a nil mapping has none.
func pairs(n *yaml.Node, f func(key, value *yaml.Node) error) error {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return at(n, "a mapping is expected here")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := f(n.Content[i], n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// without gives a mapping less some of its keys.
func without(n *yaml.Node, keys ...string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return n
	}
	out := *n
	out.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !slices.Contains(keys, n.Content[i].Value) {
			out.Content = append(out.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &out
}

// merged lays own over base as SAM lays a resource over Globals: mappings are merged, lists appended, scalars replaced.
func merged(base, own *yaml.Node) *yaml.Node {
	switch {
	case own == nil:
		return base
	case base == nil || base.Kind != own.Kind || own.Kind == yaml.ScalarNode:
		return own
	case own.Kind == yaml.SequenceNode:
		out := *own
		out.Content = append(slices.Clone(base.Content), own.Content...)
		return &out
	}
	out := *own
	out.Content = nil
	for i := 0; i+1 < len(base.Content); i += 2 {
		key := base.Content[i]
		out.Content = append(out.Content, key, merged(base.Content[i+1], lookup(own, key.Value)))
	}
	for i := 0; i+1 < len(own.Content); i += 2 {
		if lookup(base, own.Content[i].Value) == nil {
			out.Content = append(out.Content, own.Content[i], own.Content[i+1])
		}
	}
	return &out
}

// at makes an error that begins with the line of a node.
func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

// decode fills a struct from a resolved node. Fields the struct does not have are errors.
func decode(n *yaml.Node, what string, out any) error {
	if n == nil {
		return nil
	}
	if err := n.Load(out, yaml.WithKnownFields()); err != nil {
		return at(n, "%s: %v", what, err)
	}
	return nil
}
