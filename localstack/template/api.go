package template

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

func (b *builder) api(r *resource) error {
	if b.system.API.LogicalID != "" {
		return at(r.node, "a second AWS::Serverless::Api (%s) is not supported by the embedded stack", r.logicalID)
	}
	var p struct {
		StageName        string                     `yaml:"StageName"`
		BinaryMediaTypes []string                   `yaml:"BinaryMediaTypes"`
		GatewayResponses map[string]gatewayResponse `yaml:"GatewayResponses"`
	}
	r.properties = merged(lookup(b.globals, "Api"), r.properties)
	err := b.properties(r, &p, "Name", "Description", "Tags", "OpenApiVersion", "EndpointConfiguration", "MergeDefinitions", "DefinitionBody",
		"TracingEnabled", "MethodSettings", "AccessLogSetting", "AlwaysDeploy")
	if err != nil {
		return err
	}
	if err := b.definedPaths(lookup(r.properties, "DefinitionBody")); err != nil {
		return err
	}
	b.system.API = API{LogicalID: r.logicalID, Stage: p.StageName, BinaryTypes: binaryTypes(p.BinaryMediaTypes), Responses: map[string]GatewayResponse{}}
	for kind, g := range p.GatewayResponses {
		response, err := g.response(r.node)
		if err != nil {
			return err
		}
		b.system.API.Responses[kind] = response
	}
	return nil
}

type gatewayResponse struct {
	StatusCode         string            `yaml:"StatusCode"`
	ResponseTemplates  map[string]string `yaml:"ResponseTemplates"`
	ResponseParameters struct {
		Headers map[string]string `yaml:"Headers"`
	} `yaml:"ResponseParameters"`
}

// definition is one method of an API's DefinitionBody.
type definition struct {
	node     *yaml.Node
	function string // ARN
}

// definedPaths reads the paths of a DefinitionBody. They are what API Gateway serves; the functions' events beside
// them give the permission to call.
func (b *builder) definedPaths(body *yaml.Node) error {
	return pairs(lookup(body, "paths"), func(path, methods *yaml.Node) error {
		return pairs(methods, func(method, operation *yaml.Node) error {
			name := strings.ToUpper(method.Value)
			if method.Value == "x-amazon-apigateway-any-method" {
				name = "ANY"
			}
			d, err := b.integration(method, operation)
			b.defined[Route{Method: name, Path: path.Value}] = d
			return err
		})
	})
}

func (b *builder) integration(method, operation *yaml.Node) (definition, error) {
	n := lookup(operation, "x-amazon-apigateway-integration")
	if n == nil {
		return definition{}, at(method, "%s has no x-amazon-apigateway-integration", method.Value)
	}
	var p struct {
		Type       string `yaml:"type"`
		HTTPMethod string `yaml:"httpMethod"`
		URI        string `yaml:"uri"`
	}
	resolved, err := b.resolve(n)
	if err != nil {
		return definition{}, err
	}
	if err := decode(resolved, "integration", &p); err != nil {
		return definition{}, err
	}
	_, arn, found := strings.Cut(p.URI, ":lambda:path/2015-03-31/functions/")
	arn, whole := strings.CutSuffix(arn, "/invocations")
	if !strings.EqualFold(p.Type, "aws_proxy") || p.HTTPMethod != "POST" || !found || !whole {
		return definition{}, at(n, "only aws_proxy integrations that POST to a function are supported by the embedded stack")
	}
	return definition{node: n, function: arn}, nil
}

// compareRoutes refuses a DefinitionBody whose paths are not those of the functions' events: one would be served
// without permission to call, the other not served at all.
func (b *builder) compareRoutes() error {
	if len(b.defined) == 0 {
		return nil
	}
	events := map[Route]string{}
	for _, f := range b.system.Functions {
		for _, r := range f.Routes {
			if b.defined[r].function != f.ARN {
				return at(b.resources[f.LogicalID].node, "%s has an event for %s %s that DefinitionBody does not give it", f.LogicalID, r.Method, r.Path)
			}
			events[r] = f.ARN
		}
	}
	for r, d := range b.defined {
		if events[r] != d.function {
			return at(d.node, "%s %s of DefinitionBody has no Api event of its function", r.Method, r.Path)
		}
	}
	return nil
}

// response reads one gateway response. Header values are mapping expressions; only quoted constants are known here.
func (g gatewayResponse) response(n *yaml.Node) (GatewayResponse, error) {
	out := GatewayResponse{Headers: map[string]string{}}
	if g.StatusCode != "" {
		status, err := strconv.Atoi(g.StatusCode)
		if err != nil {
			return out, at(n, "gateway response: status %q is not a number", g.StatusCode)
		}
		out.Status = status
	}
	for mediaType, text := range g.ResponseTemplates {
		if mediaType != "application/json" {
			return out, at(n, "gateway response: a template for %s is not supported by the embedded stack", mediaType)
		}
		out.Template = text
	}
	for name, v := range g.ResponseParameters.Headers {
		constant, ok := strings.CutPrefix(v, "'")
		constant, closed := strings.CutSuffix(constant, "'")
		if !ok || !closed {
			return out, at(n, "gateway response: header %s: only a quoted constant is supported by the embedded stack, not %s", name, v)
		}
		out.Headers[name] = constant
	}
	return out, nil
}

// binaryTypes undoes SAM's escape: image~1png stands for image/png.
func binaryTypes(types []string) []string {
	var out []string
	for _, t := range types {
		out = append(out, strings.ReplaceAll(t, "~1", "/"))
	}
	return out
}
