package ddb

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// definition is everything about a table but its items, as the log keeps it.
type definition struct {
	Name               string
	ID                 string
	Created            time.Time
	KeySchema          []keyElement
	Attributes         []attributeDef
	BillingMode        string
	Throughput         *throughput `json:",omitempty"`
	Indexes            []indexDef  `json:",omitempty"`
	Stream             *streamSpec `json:",omitempty"`
	StreamLabel        string      `json:",omitempty"`
	TTL                string      `json:",omitempty"` // attribute, when TTL is on
	Recovery           bool        `json:",omitempty"` // point-in-time recovery
	DeletionProtection bool        `json:",omitempty"`
}

type keyElement struct {
	Name string `json:"AttributeName"`
	Role string `json:"KeyType"` // HASH or RANGE
}

type attributeDef struct {
	Name string `json:"AttributeName"`
	Type kind   `json:"AttributeType"`
}

type throughput struct {
	ReadCapacityUnits  int64
	WriteCapacityUnits int64
}

type indexDef struct {
	Name       string `json:"IndexName"`
	KeySchema  []keyElement
	Projection projection
	Throughput *throughput `json:"ProvisionedThroughput,omitempty"`
}

type projection struct {
	Type    string   `json:"ProjectionType"` // ALL, KEYS_ONLY or INCLUDE
	Include []string `json:"NonKeyAttributes,omitempty"`
}

type streamSpec struct {
	StreamEnabled  bool
	StreamViewType string `json:",omitempty"`
}

// schema resolves key elements with the attribute definitions, which check has found complete.
func (d definition) schema(elements []keyElement) keySchema {
	var k keySchema
	for _, e := range elements {
		part := keyPart{e.Name, d.attributeType(e.Name)}
		if e.Role == "HASH" {
			k.hash = part
		} else {
			k.sort = part
		}
	}
	return k
}

func (d definition) attributeType(name string) kind {
	for _, a := range d.Attributes {
		if a.Name == name {
			return a.Type
		}
	}
	return ""
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

func checkName(parameter, name string) error {
	if !validName.MatchString(name) {
		return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+ and have a length of 3 to 255", name, parameter)
	}
	return nil
}

// check refuses a definition that CreateTable or UpdateTable would refuse.
func (d definition) check() error {
	if err := checkName("tableName", d.Name); err != nil {
		return err
	}
	if err := d.checkSchema(d.KeySchema); err != nil {
		return err
	}
	for i, one := range d.Indexes {
		if err := d.checkIndex(one); err != nil {
			return err
		}
		if slices.ContainsFunc(d.Indexes[:i], func(other indexDef) bool { return other.Name == one.Name }) {
			return invalidValue("Duplicate index name: %s", one.Name)
		}
	}
	for _, a := range d.Attributes {
		if !containsKind([]kind{kindS, kindN, kindB}, a.Type) {
			return invalid("1 validation error detected: Value '%s' at 'attributeDefinitions' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]", a.Type)
		}
		if !d.usesAttribute(a.Name) {
			return invalidValue("Some AttributeDefinitions are not used. AttributeDefinitions: %s, keys used: %s", d.attributeNames(), "["+strings.Join(d.keyNames(), ", ")+"]")
		}
	}
	if d.BillingMode == "PROVISIONED" && d.Throughput == nil {
		return invalidValue("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	if d.BillingMode != "PROVISIONED" && d.Throughput != nil {
		return invalidValue("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	}
	return nil
}

func (d definition) checkSchema(elements []keyElement) error {
	if len(elements) == 0 || elements[0].Role != "HASH" {
		return invalidValue("The first KeySchemaElement is not a HASH key type")
	}
	if len(elements) > 2 {
		return invalid("1 validation error detected: Value at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2")
	}
	if len(elements) == 2 && elements[1].Role != "RANGE" {
		return invalidValue("The second KeySchemaElement is not a RANGE key type")
	}
	if len(elements) == 2 && elements[0].Name == elements[1].Name {
		return invalidValue("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	}
	for _, e := range elements {
		if d.attributeType(e.Name) == "" {
			return invalidValue("Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: %s", e.Name, d.attributeNames())
		}
	}
	return nil
}

func (d definition) checkIndex(one indexDef) error {
	if err := checkName("indexName", one.Name); err != nil {
		return err
	}
	switch p := one.Projection; {
	case !slices.Contains([]string{"ALL", "KEYS_ONLY", "INCLUDE"}, p.Type):
		return invalidValue("Unknown ProjectionType: %s", p.Type)
	case p.Type == "INCLUDE" && len(p.Include) == 0:
		return invalidValue("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	case p.Type != "INCLUDE" && len(p.Include) > 0:
		return invalidValue("ProjectionType is %s, but NonKeyAttributes is specified", p.Type)
	}
	return d.checkSchema(one.KeySchema)
}

func (d definition) keyNames() []string {
	var names []string
	for _, e := range d.KeySchema {
		names = append(names, e.Name)
	}
	for _, one := range d.Indexes {
		for _, e := range one.KeySchema {
			names = append(names, e.Name)
		}
	}
	return names
}

func (d definition) usesAttribute(name string) bool { return slices.Contains(d.keyNames(), name) }

func (d definition) attributeNames() string {
	var names []string
	for _, a := range d.Attributes {
		names = append(names, a.Name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}
