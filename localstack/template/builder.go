package template

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// sections of a template. Outputs and Metadata say nothing about what runs.
var sections = []string{"AWSTemplateFormatVersion", "Transform", "Description", "Metadata", "Parameters", "Conditions",
	"Globals", "Resources", "Outputs"}

// awsOnly are resource types that have nothing to build here.
var awsOnly = []string{"AWS::Logs::LogGroup", "AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy", "AWS::CloudWatch::Alarm",
	"AWS::CloudWatch::Dashboard", "AWS::IAM::Role", "AWS::IAM::ManagedPolicy", "AWS::Lambda::Permission"}

// resource is one entry of Resources before it is built.
type resource struct {
	logicalID, kind string
	node            *yaml.Node
	properties      *yaml.Node // unresolved; nil when there are none
}

type builder struct {
	resolver
	globals *yaml.Node
	order   []*resource
	defined map[Route]definition // by the API's DefinitionBody
	system  *System
}

func newBuilder(doc *yaml.Node, o Options) (*builder, error) {
	err := pairs(doc, func(key, _ *yaml.Node) error {
		if !slices.Contains(sections, key.Value) {
			return at(key, "section %s is not supported by the embedded stack", key.Value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b := &builder{globals: lookup(doc, "Globals"), defined: map[Route]definition{}, system: &System{}}
	b.resolver = resolver{conditions: lookup(doc, "Conditions"), resources: map[string]*resource{}, options: o}
	if b.parameters, err = parameters(lookup(doc, "Parameters"), o.Parameters); err != nil {
		return nil, err
	}
	return b, b.collect(lookup(doc, "Resources"))
}

// parameters gives each declared parameter its override or default.
func parameters(declared *yaml.Node, overrides map[string]string) (map[string]string, error) {
	out := map[string]string{}
	err := pairs(declared, func(key, p *yaml.Node) error {
		value, given := overrides[key.Value]
		if d := lookup(p, "Default"); !given && d != nil {
			value, given = d.Value, true
		}
		if !given {
			return at(key, "parameter %s has no default and was not given", key.Value)
		}
		var allowed []string
		if err := decode(lookup(p, "AllowedValues"), "AllowedValues", &allowed); err != nil {
			return err
		}
		if allowed != nil && !slices.Contains(allowed, value) {
			return at(key, "parameter %s is %q, which is none of %s", key.Value, value, strings.Join(allowed, ", "))
		}
		out[key.Value] = value
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name := range overrides {
		if _, ok := out[name]; !ok {
			return nil, at(&yaml.Node{Line: 1}, "the template has no parameter %s", name)
		}
	}
	return out, nil
}

// collect indexes the resources whose condition holds, and checks that every type is known.
func (b *builder) collect(resources *yaml.Node) error {
	return pairs(resources, func(key, n *yaml.Node) error {
		kind := lookup(n, "Type")
		if kind == nil {
			return at(key, "%s has no Type", key.Value)
		}
		if _, known := builders[kind.Value]; !known && !slices.Contains(awsOnly, kind.Value) {
			return at(kind, "resource type %s is not supported by the embedded stack", kind.Value)
		}
		if c := lookup(n, "Condition"); c != nil {
			if holds, err := b.condition(c, c.Value); err != nil || !holds {
				return err
			}
		}
		r := &resource{logicalID: key.Value, kind: kind.Value, node: key, properties: lookup(n, "Properties")}
		b.resources[key.Value] = r
		b.order = append(b.order, r)
		return nil
	})
}

// builders make each supported type.
var builders = map[string]func(*builder, *resource) error{
	"AWS::Serverless::Function": (*builder).function,
	"AWS::Serverless::Api":      (*builder).api,
	"AWS::SQS::Queue":           (*builder).queue,
	"AWS::DynamoDB::Table":      (*builder).table,
	"AWS::S3::Bucket":           (*builder).bucket,
}

func (b *builder) build() (*System, error) {
	for _, r := range b.order {
		if f, ok := builders[r.kind]; ok {
			if err := f(b, r); err != nil {
				return nil, err
			}
		}
	}
	return b.system, b.compareRoutes()
}

// properties resolves the properties of a resource, less those that mean something on AWS only, into out.
func (b *builder) properties(r *resource, out any, awsOnly ...string) error {
	if r.properties == nil {
		return nil
	}
	n, err := b.resolve(without(r.properties, awsOnly...))
	if err != nil {
		return err
	}
	return decode(n, r.logicalID, out)
}

// nameProperty is the property that names a resource, by type.
var nameProperty = map[string]string{
	"AWS::Serverless::Function": "FunctionName", "AWS::SQS::Queue": "QueueName", "AWS::DynamoDB::Table": "TableName", "AWS::S3::Bucket": "BucketName",
}

// name is the physical name: the template's, or the stack's name and the logical id.
func (r *resolver) name(res *resource) (string, error) {
	if n := lookup(res.properties, nameProperty[res.kind]); n != nil {
		return r.str(n)
	}
	name := r.options.StackName + "-" + res.logicalID
	if res.kind == "AWS::S3::Bucket" {
		name = strings.ToLower(name)
	}
	return name, nil
}

func (r *resolver) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + r.options.Region + ":" + r.options.Account + ":" + resource
}

// refOf is what Ref gives for a resource.
func (r *resolver) refOf(n *yaml.Node, res *resource) (string, error) {
	name, err := r.name(res)
	if err != nil {
		return "", err
	}
	switch res.kind {
	case "AWS::SQS::Queue":
		return r.options.Endpoint + "/" + r.options.Account + "/" + name, nil
	case "AWS::Serverless::Function", "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::Serverless::Api":
		return name, nil
	}
	return "", at(n, "Ref %s: a %s has no name in the embedded stack", res.logicalID, res.kind)
}

// attributeOf is what GetAtt gives for a resource.
func (r *resolver) attributeOf(n *yaml.Node, res *resource, attribute string) (string, error) {
	name, err := r.name(res)
	if err != nil {
		return "", err
	}
	switch res.kind + "." + attribute {
	case "AWS::SQS::Queue.Arn":
		return r.arn("sqs", name), nil
	case "AWS::SQS::Queue.QueueName":
		return name, nil
	case "AWS::SQS::Queue.QueueUrl":
		return r.refOf(n, res)
	case "AWS::DynamoDB::Table.Arn":
		return r.arn("dynamodb", "table/"+name), nil
	case "AWS::S3::Bucket.Arn":
		return "arn:aws:s3:::" + name, nil
	case "AWS::Serverless::Function.Arn":
		return r.arn("lambda", "function:"+name), nil
	}
	return "", at(n, "Fn::GetAtt %s.%s is not supported by the embedded stack", res.logicalID, attribute)
}
