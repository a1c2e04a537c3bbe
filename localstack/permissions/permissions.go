// Package permissions tells whether the role that the template gives a function allows a call it made. The embedded
// stack enforces no policy and neither does LocalStack, so what a role lacks would show on AWS alone. It refuses to be
// IAM: it knows the constructs this template uses, and what it does not know it reports.
package permissions

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"pintu/localstack/faults"
	"pintu/localstack/template"
)

// Roles are the permissions of every function of a template.
type Roles struct {
	system     *template.System
	statements map[string][]statement // by logical id of the function
}

// statement allows actions on resources, named by logical id: ControlTable, ControlTable/index/due, Bucket/*.
type statement struct {
	actions, resources []string
}

// Read reads the roles of the template at path; system is the same template as the stack runs it.
func Read(path string, system *template.System) (*Roles, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Resources map[string]struct {
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Load(text, &doc); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	r := &Roles{system: system, statements: map[string][]statement{}}
	for _, f := range system.Functions {
		var properties struct {
			Policies []struct {
				PolicyDocument struct {
					Statement []struct {
						Action   yaml.Node `yaml:"Action"`
						Resource yaml.Node `yaml:"Resource"`
					} `yaml:"Statement"`
				} `yaml:"PolicyDocument"`
			} `yaml:"Policies"`
		}
		role := doc.Resources[f.LogicalID+"Role"]
		if err := role.Properties.Decode(&properties); err != nil {
			return nil, fmt.Errorf("role of %s: %w", f.LogicalID, err)
		}
		for _, p := range properties.Policies {
			for _, s := range p.PolicyDocument.Statement {
				r.statements[f.LogicalID] = append(r.statements[f.LogicalID], statement{values(s.Action), resources(s.Resource)})
			}
		}
	}
	return r, nil
}

// values gives a list, or the one value that stands for it.
func values(n yaml.Node) (out []string) {
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	for _, c := range n.Content {
		out = append(out, c.Value)
	}
	return out
}

// resources turns "!GetAtt Bucket.Arn" and "!Sub ${Bucket.Arn}/*" into Bucket and Bucket/*.
func resources(n yaml.Node) []string {
	out := values(n)
	for i, v := range out {
		v = strings.TrimSuffix(v, ".Arn")
		out[i] = strings.Replace(strings.TrimPrefix(v, "${"), ".Arn}", "", 1)
	}
	return out
}

// Check tells why a call is not allowed; nil when it is, or when no function made it.
func (r *Roles) Check(c faults.Call) error {
	function, _, _ := strings.Cut(c.Caller, "-")
	if function == "" {
		return nil
	}
	needs, err := r.needs(c)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Caller, err)
	}
	for _, n := range needs {
		if !r.allowed(function, n) {
			return fmt.Errorf("%s may not %s on %s (it called %s)", function, n.action, n.resource, c.Operation)
		}
	}
	return nil
}

func (r *Roles) allowed(function string, n need) bool {
	return slices.ContainsFunc(r.statements[function], func(s statement) bool {
		return slices.Contains(s.actions, n.action) && slices.Contains(s.resources, n.resource)
	})
}
