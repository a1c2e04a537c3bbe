package ddb

// keyRange is a stretch of a table or index: keys from low up to but not including high.
type keyRange struct{ low, high string }

// parseKeyCondition reads a KeyConditionExpression for an index or table with the given key schema: equality of the
// partition key and at most one condition on the sort key.
func parseKeyCondition(src string, ph *placeholders, schema keySchema) (keyRange, error) {
	cond, err := parseCondition("KeyConditionExpression", src, ph)
	if err != nil {
		return keyRange{}, err
	}
	byName := map[string]condition{}
	if err := gatherKeyConditions(cond, byName); err != nil {
		return keyRange{}, err
	}
	hash, ok := byName[schema.hash.name]
	if !ok {
		return keyRange{}, invalid("Query condition missed key schema element: %s", schema.hash.name)
	}
	equals, ok := hash.(comparison)
	if !ok || equals.op != "=" {
		return keyRange{}, invalid("Query key condition not supported")
	}
	v, err := keyOperand(equals.right, schema.hash)
	if err != nil {
		return keyRange{}, err
	}
	prefix := string(appendPartition(nil, v))
	if len(byName) == 1 {
		return keyRange{prefix, after(prefix)}, nil
	}
	on, ok := byName[schema.sort.name]
	if !ok || schema.sort.name == "" || len(byName) > 2 {
		return keyRange{}, invalid("Query key condition not supported")
	}
	return sortRange(on, schema.sort, prefix)
}

// gatherKeyConditions takes a conjunction apart into conditions by attribute.
func gatherKeyConditions(c condition, byName map[string]condition) error {
	var on operand
	switch c := c.(type) {
	case and:
		if err := gatherKeyConditions(c.left, byName); err != nil {
			return err
		}
		return gatherKeyConditions(c.right, byName)
	case or:
		return unsupportedOperator("OR")
	case not:
		return unsupportedOperator("NOT")
	case oneOf:
		return unsupportedOperator("IN")
	case exists:
		return unsupportedOperator("attribute_exists")
	case typeIs:
		return unsupportedOperator("attribute_type")
	case contains:
		return unsupportedOperator("contains")
	case comparison:
		if c.op == "<>" {
			return unsupportedOperator("<>")
		}
		on = c.left
	case between:
		on = c.what
	case beginsWith:
		on = c.what
	}
	at, ok := on.(path)
	if !ok {
		return invalid("Invalid condition in KeyConditionExpression: an attribute must stand on the left")
	}
	if len(at) > 1 {
		return invalid("KeyConditionExpressions cannot have conditions on nested attributes")
	}
	if byName[at[0].name] != nil {
		return invalid("KeyConditionExpressions must only contain one condition per key")
	}
	byName[at[0].name] = c
	return nil
}

func unsupportedOperator(name string) error {
	return invalid("Invalid operator used in KeyConditionExpression: %s", name)
}

// keyOperand wants a literal that the key attribute could have.
func keyOperand(o operand, part keyPart) (value, error) {
	l, ok := o.(literal)
	if !ok {
		return nil, invalid("Invalid condition in KeyConditionExpression: a value must stand on the right")
	}
	if l.v.kind() != part.kind {
		return nil, invalidValue("Condition parameter type does not match schema type")
	}
	if what := emptyKey(l.v); what != "" {
		return nil, invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", what, part.name)
	}
	return l.v, nil
}

// sortRange is the part of the partition that begins with prefix where the sort key's condition holds.
func sortRange(c condition, part keyPart, prefix string) (keyRange, error) {
	whole := keyRange{prefix, after(prefix)}
	var operands []operand
	switch c := c.(type) {
	case comparison:
		operands = []operand{c.right}
	case between:
		operands = []operand{c.low, c.high}
	case beginsWith:
		operands = []operand{c.prefix}
	}
	var at []string // encoded keys without what may follow them
	var last value
	for _, o := range operands {
		v, err := keyOperand(o, part)
		if err != nil {
			return whole, err
		}
		at = append(at, string(appendKeyValue([]byte(prefix), v)))
		last = v
	}
	switch c := c.(type) {
	case between:
		return keyRange{at[0], after(at[1])}, nil
	case beginsWith:
		begin := string(appendKeyPrefix([]byte(prefix), last))
		return keyRange{begin, after(begin)}, nil
	case comparison:
		switch c.op {
		case "=":
			return keyRange{at[0], after(at[0])}, nil
		case "<":
			return keyRange{prefix, at[0]}, nil
		case "<=":
			return keyRange{prefix, after(at[0])}, nil
		case ">":
			return keyRange{after(at[0]), whole.high}, nil
		}
	}
	return keyRange{at[0], whole.high}, nil
}
