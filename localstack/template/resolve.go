package template

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// resolver knows what names stand for.
type resolver struct {
	parameters map[string]string
	conditions *yaml.Node // the Conditions section
	resources  map[string]*resource
	options    Options
}

// resolve gives a node with every intrinsic replaced by what it stands for; nil when that is AWS::NoValue.
func (r *resolver) resolve(n *yaml.Node) (*yaml.Node, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return r.resolve(n.Alias)
	case yaml.SequenceNode:
		return r.resolveList(n)
	case yaml.MappingNode:
		if f, arg, ok := intrinsic(n); ok {
			return r.apply(n, f, arg)
		}
		return r.resolveMap(n)
	}
	return n, nil
}

func (r *resolver) resolveList(n *yaml.Node) (*yaml.Node, error) {
	out := *n
	out.Content = nil
	for _, item := range n.Content {
		v, err := r.resolve(item)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out.Content = append(out.Content, v)
		}
	}
	return &out, nil
}

func (r *resolver) resolveMap(n *yaml.Node) (*yaml.Node, error) {
	out := *n
	out.Content = nil
	err := pairs(n, func(key, value *yaml.Node) error {
		v, err := r.resolve(value)
		if err == nil && v != nil {
			out.Content = append(out.Content, key, v)
		}
		return err
	})
	return &out, err
}

// intrinsic tells whether a mapping is a function call.
func intrinsic(n *yaml.Node) (name string, arg *yaml.Node, ok bool) {
	if len(n.Content) != 2 {
		return "", nil, false
	}
	name = n.Content[0].Value
	return name, n.Content[1], name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::")
}

func (r *resolver) apply(n *yaml.Node, name string, arg *yaml.Node) (*yaml.Node, error) {
	switch name {
	case "Ref":
		if arg.Value == "AWS::NoValue" {
			return nil, nil
		}
		return r.text(n, func() (string, error) { return r.ref(arg, arg.Value) })
	case "Fn::GetAtt":
		return r.text(n, func() (string, error) { return r.getAtt(arg) })
	case "Fn::Sub":
		return r.text(n, func() (string, error) { return r.sub(arg) })
	case "Fn::Join":
		return r.text(n, func() (string, error) { return r.join(arg) })
	case "Fn::Select":
		return r.choose(arg)
	case "Fn::If":
		return r.either(arg)
	}
	return nil, at(n, "intrinsic %s is not supported by the embedded stack", name)
}

// text makes a node of a computed string. It has no tag, so that numbers and booleans decode as such.
func (r *resolver) text(n *yaml.Node, f func() (string, error)) (*yaml.Node, error) {
	s, err := f()
	if err != nil {
		return nil, err
	}
	out := scalar(s, n.Line)
	out.Tag = ""
	if s == "" {
		out.Tag = "!!str"
	}
	return out, nil
}

// str resolves a node that must be a scalar.
func (r *resolver) str(n *yaml.Node) (string, error) {
	v, err := r.resolve(n)
	if err != nil {
		return "", err
	}
	if v == nil || v.Kind != yaml.ScalarNode {
		return "", at(n, "a string is expected here")
	}
	return v.Value, nil
}

// ref is what Ref gives for a parameter, a pseudo parameter or a resource.
func (r *resolver) ref(n *yaml.Node, name string) (string, error) {
	if v, ok := r.parameters[name]; ok {
		return v, nil
	}
	if v, ok := r.pseudo(name); ok {
		return v, nil
	}
	res, ok := r.resources[name]
	if !ok {
		return "", at(n, "Ref %s: nothing has that name", name)
	}
	return r.refOf(n, res)
}

func (r *resolver) pseudo(name string) (string, bool) {
	o := r.options
	v, ok := map[string]string{
		"AWS::Region": o.Region, "AWS::AccountId": o.Account, "AWS::StackName": o.StackName, "AWS::Partition": "aws",
		"AWS::URLSuffix": "amazonaws.com", "AWS::StackId": "arn:aws:cloudformation:" + o.Region + ":" + o.Account + ":stack/" + o.StackName,
	}[name]
	return v, ok
}

func (r *resolver) getAtt(arg *yaml.Node) (string, error) {
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 2 {
		return "", at(arg, "Fn::GetAtt takes a resource and an attribute")
	}
	return r.attribute(arg, arg.Content[0].Value, arg.Content[1].Value)
}

func (r *resolver) attribute(n *yaml.Node, logicalID, name string) (string, error) {
	res, ok := r.resources[logicalID]
	if !ok {
		return "", at(n, "Fn::GetAtt %s.%s: nothing has that name", logicalID, name)
	}
	return r.attributeOf(n, res, name)
}

// sub replaces ${Name}, ${Resource.Attribute} and the names of its own map; ${!x} stands for ${x}.
func (r *resolver) sub(arg *yaml.Node) (string, error) {
	text, own := arg, (*yaml.Node)(nil)
	if arg.Kind == yaml.SequenceNode && len(arg.Content) == 2 {
		text, own = arg.Content[0], arg.Content[1]
	}
	if text.Kind != yaml.ScalarNode {
		return "", at(arg, "Fn::Sub takes a string, or a string and a map")
	}
	var out strings.Builder
	rest := text.Value
	for {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return "", at(arg, "Fn::Sub: ${ without }")
		}
		v, err := r.variable(arg, strings.TrimSpace(name), own)
		if err != nil {
			return "", err
		}
		out.WriteString(v)
		rest = tail
	}
}

func (r *resolver) variable(n *yaml.Node, name string, own *yaml.Node) (string, error) {
	if literal, ok := strings.CutPrefix(name, "!"); ok {
		return "${" + literal + "}", nil
	}
	if v := lookup(own, name); v != nil {
		return r.str(v)
	}
	if res, attribute, ok := strings.Cut(name, "."); ok {
		return r.attribute(n, res, attribute)
	}
	return r.ref(n, name)
}

func (r *resolver) join(arg *yaml.Node) (string, error) {
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 2 {
		return "", at(arg, "Fn::Join takes a separator and a list")
	}
	list, err := r.resolve(arg.Content[1])
	if err != nil {
		return "", err
	}
	var parts []string
	if err := decode(list, "Fn::Join", &parts); err != nil {
		return "", err
	}
	return strings.Join(parts, arg.Content[0].Value), nil
}

func (r *resolver) choose(arg *yaml.Node) (*yaml.Node, error) {
	v, err := r.resolve(arg)
	if err != nil {
		return nil, err
	}
	var pick struct {
		index int
		list  []*yaml.Node
	}
	if v.Kind == yaml.SequenceNode && len(v.Content) == 2 && v.Content[1].Kind == yaml.SequenceNode {
		pick.list = v.Content[1].Content
		err = decode(v.Content[0], "Fn::Select", &pick.index)
	}
	if err != nil || pick.index < 0 || pick.index >= len(pick.list) {
		return nil, at(arg, "Fn::Select takes an index and a list that has it")
	}
	return pick.list[pick.index], nil
}

func (r *resolver) either(arg *yaml.Node) (*yaml.Node, error) {
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 3 {
		return nil, at(arg, "Fn::If takes a condition and two values")
	}
	yes, err := r.condition(arg, arg.Content[0].Value)
	if err != nil {
		return nil, err
	}
	if yes {
		return r.resolve(arg.Content[1])
	}
	return r.resolve(arg.Content[2])
}

// condition evaluates a named condition.
func (r *resolver) condition(n *yaml.Node, name string) (bool, error) {
	c := lookup(r.conditions, name)
	if c == nil {
		return false, at(n, "there is no condition %s", name)
	}
	return r.truth(c)
}

func (r *resolver) truth(n *yaml.Node) (bool, error) {
	name, arg, ok := intrinsic(n)
	switch {
	case ok && name == "Condition":
		return r.condition(n, arg.Value)
	case ok && name == "Fn::Equals" && len(arg.Content) == 2:
		a, err := r.str(arg.Content[0])
		if err != nil {
			return false, err
		}
		b, err := r.str(arg.Content[1])
		return a == b, err
	case ok && slices.Contains([]string{"Fn::And", "Fn::Or", "Fn::Not"}, name) && len(arg.Content) > 0:
		return r.combine(name, arg.Content)
	}
	return false, at(n, "condition function %s is not supported by the embedded stack", name)
}

func (r *resolver) combine(name string, parts []*yaml.Node) (bool, error) {
	result := name == "Fn::And"
	for _, p := range parts {
		v, err := r.truth(p)
		if err != nil {
			return false, err
		}
		switch name {
		case "Fn::Not":
			return !v, nil
		case "Fn::And":
			result = result && v
		default:
			result = result || v
		}
	}
	return result, nil
}
