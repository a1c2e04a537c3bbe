package gateway

import (
	"fmt"
	"net/url"
	"strings"

	"pintu/localstack/template"
)

// node is one path segment of the API's resources. Only a node with methods is a resource.
type node struct {
	path      string            // of the resource, such as /v1/jobs/{id}
	methods   map[string]string // method or ANY -> logical id of the function
	exact     map[string]*node
	parameter *node // {name}
	greedy    *node // {name+}
	name      string
}

func (n *node) add(r template.Route, function string) error {
	for segment := range strings.SplitSeq(strings.Trim(r.Path, "/"), "/") {
		if segment == "" {
			continue
		}
		next, err := n.child(segment)
		if err != nil {
			return fmt.Errorf("route %s %s of %s: %w", r.Method, r.Path, function, err)
		}
		n = next
	}
	if n.methods == nil {
		n.methods = map[string]string{}
	}
	if other, taken := n.methods[r.Method]; taken {
		return fmt.Errorf("route %s %s is given to %s and to %s", r.Method, r.Path, other, function)
	}
	n.path, n.methods[r.Method] = r.Path, function
	return nil
}

// child finds or makes the node of a segment. API Gateway allows one parameter name per place.
func (n *node) child(segment string) (*node, error) {
	name, isParameter := strings.CutPrefix(segment, "{")
	name, closed := strings.CutSuffix(name, "}")
	if !isParameter || !closed {
		if n.exact == nil {
			n.exact = map[string]*node{}
		}
		if n.exact[segment] == nil {
			n.exact[segment] = &node{}
		}
		return n.exact[segment], nil
	}
	place := &n.parameter
	name, isGreedy := strings.CutSuffix(name, "+")
	if isGreedy {
		place = &n.greedy
	}
	if *place == nil {
		*place = &node{name: name}
	}
	if (*place).name != name {
		return nil, fmt.Errorf("{%s} stands where another route has {%s}", name, (*place).name)
	}
	return *place, nil
}

// match finds the resource of an escaped path: exact segments go before parameters, parameters before the rest of the
// path. The resource is chosen by path alone; when it lacks the method, no other one is asked. Trailing slashes do not
// count. Values of parameters are unescaped.
func (n *node) match(escaped string) (*node, map[string]string) {
	var segments []string
	if trimmed := strings.TrimRight(strings.TrimPrefix(escaped, "/"), "/"); trimmed != "" {
		segments = strings.Split(trimmed, "/")
	}
	parameters := map[string]string{}
	return n.walk(segments, parameters), parameters
}

func (n *node) walk(segments []string, parameters map[string]string) *node {
	if len(segments) == 0 {
		if n.methods == nil {
			return nil
		}
		return n
	}
	if next := n.exact[segments[0]]; next != nil {
		if found := next.walk(segments[1:], parameters); found != nil {
			return found
		}
	}
	if n.parameter != nil && segments[0] != "" {
		if found := n.parameter.walk(segments[1:], parameters); found != nil {
			parameters[n.parameter.name] = unescaped(segments[0])
			return found
		}
	}
	if n.greedy != nil && n.greedy.methods != nil {
		parameters[n.greedy.name] = unescaped(strings.Join(segments, "/"))
		return n.greedy
	}
	return nil
}

// function gives the logical id that serves a method; empty when there is no such resource or method.
func (n *node) function(method string) string {
	if n == nil {
		return ""
	}
	if f, ok := n.methods[method]; ok {
		return f
	}
	return n.methods["ANY"]
}

func unescaped(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
