package ddb_test

import (
	"testing"
)

// document is the item every condition is tried on.
func document() item {
	return withKey("doc", "1", item{
		"name": str("alpha"), "n": num("7"), "tags": listOf(str("a"), str("b"), num("3")), "set": strSet("x", "y"),
		"nset": numSet("1", "2.50"), "bset": binSet([]byte{1}, []byte{2}), "bin": bin(1, 2, 3), "flag": boolean(true), "nothing": null(),
		"m":           mapOf(item{"in": mapOf(item{"x": num("3")}), "arr": listOf(mapOf(item{"k": str("v")}), str("z"))}),
		"dotted.name": str("d"), "emoji": str("a𝄞"), "blank": str(""),
	})
}

func TestConditions(t *testing.T) {
	f := newFixture(t)
	f.put(document())
	tests := []struct {
		expression string
		names      map[string]string
		values     item
		want       bool
	}{
		{"attribute_exists(m.#in.x)", map[string]string{"#in": "in"}, nil, true},
		{"attribute_exists(m.arr[0].k)", nil, nil, true},
		{"attribute_exists(m.arr[5])", nil, nil, false},
		{"attribute_exists(n.x)", nil, nil, false},
		{"attribute_not_exists(zzz)", nil, nil, true},
		{"attribute_exists(nothing)", nil, nil, true},
		{"begins_with(#n, :p)", map[string]string{"#n": "name"}, item{":p": str("al")}, true},
		{"begins_with(#n, :p)", map[string]string{"#n": "name"}, item{":p": str("")}, true},
		{"begins_with(bin, :p)", nil, item{":p": bin(1, 2)}, true},
		{"begins_with(n, :p)", nil, item{":p": str("7")}, false},
		{"contains(#n, :p)", map[string]string{"#n": "name"}, item{":p": str("lph")}, true},
		{"contains(tags, :p)", nil, item{":p": num("3.0")}, true},
		{"contains(#s, :p)", map[string]string{"#s": "set"}, item{":p": str("x")}, true},
		{"contains(nset, :p)", nil, item{":p": num("2.5")}, true},
		{"contains(bset, :p)", nil, item{":p": bin(2)}, true},
		{"contains(bin, :p)", nil, item{":p": bin(2, 3)}, true},
		{"contains(:all, #n)", map[string]string{"#n": "name"}, item{":all": listOf(str("alpha"))}, true},
		{"contains(n, :p)", nil, item{":p": str("7")}, false},
		{"size(tags) = :v", nil, item{":v": num("3")}, true},
		{"size(emoji) = :v", nil, item{":v": num("3")}, true}, // UTF-16 units
		{"size(bin) = :v", nil, item{":v": num("3")}, true},
		{"size(m) = :v", nil, item{":v": num("2")}, true},
		{"size(nset) = :v", nil, item{":v": num("2")}, true},
		{"size(blank) = :v", nil, item{":v": num("0")}, true},
		{"size(n) >= :v", nil, item{":v": num("0")}, false},
		{"size(zzz) < :v", nil, item{":v": num("9")}, false},
		{":one < size(tags)", nil, item{":one": num("1")}, true},
		{"size(tags) BETWEEN :a AND :b", nil, item{":a": num("3"), ":b": num("3")}, true},
		{"n IN (:a, :b)", nil, item{":a": num("1"), ":b": num("7")}, true},
		{"n IN(:a)", nil, item{":a": str("7")}, false},
		{"zzz IN (:a)", nil, item{":a": num("7")}, false},
		{"n BETWEEN :a AND :b", nil, item{":a": num("1"), ":b": num("7")}, true},
		{"n BETWEEN :a AND :b", nil, item{":a": num("7.1"), ":b": num("8")}, false},
		{"#n BETWEEN :a AND :b", map[string]string{"#n": "name"}, item{":a": num("1"), ":b": num("7")}, false},
		{"NOT (n = :a OR n = :b) AND (attribute_exists(n))", nil, item{":a": num("1"), ":b": num("2")}, true},
		{"NOT n = :a AND n = :b", nil, item{":a": num("1"), ":b": num("7")}, true},
		{"n = :a AND n = :b OR n = :b", nil, item{":a": num("1"), ":b": num("7")}, true},
		{"n = :b OR n = :b AND n = :a", nil, item{":a": num("1"), ":b": num("7")}, true},
		{"NOT NOT n = :b", nil, item{":b": num("7")}, true},
		{"n between :a and :b and not n in (:a)", nil, item{":a": num("1"), ":b": num("8")}, true},
		{"tags[1] = :b", nil, item{":b": str("b")}, true},
		{"(n) = (:a)", nil, item{":a": num("7")}, true},
		{"bin = :b", nil, item{":b": bin(1, 2, 3)}, true},
		{"bin < :b", nil, item{":b": bin(1, 2, 3, 0)}, true},
		{"#s = :s", map[string]string{"#s": "set"}, item{":s": strSet("y", "x")}, true},
		{"nset = :s", nil, item{":s": numSet("2.5", "1")}, true},
		{"tags = :l", nil, item{":l": listOf(str("a"), str("b"), num("3.00"))}, true},
		{"tags = :l", nil, item{":l": listOf(str("b"), str("a"), num("3"))}, false},
		{"m.#in = :m", map[string]string{"#in": "in"}, item{":m": mapOf(item{"x": num("3")})}, true},
		{"flag = :v AND nothing = :nil", nil, item{":v": boolean(true), ":nil": null()}, true},
		{"attribute_type(tags, :t)", nil, item{":t": str("L")}, true},
		{"attribute_type(nothing, :t)", nil, item{":t": str("NULL")}, true},
		{"attribute_type(zzz, :t)", nil, item{":t": str("S")}, false},
		{"n = :a", nil, item{":a": num("7.0")}, true},
		{"n = :a", nil, item{":a": str("7")}, false},
		{"n <> :a", nil, item{":a": str("7")}, true},
		{"zzz = :a", nil, item{":a": num("1")}, false},
		{"zzz <> :a", nil, item{":a": num("1")}, true},
		{"zzz < :a", nil, item{":a": num("1")}, false},
		{"n > :a", nil, item{":a": num("-7")}, true},
		{"n < :a", nil, item{":a": num("10")}, true},
		{"attribute_exists(#d)", map[string]string{"#d": "dotted.name"}, nil, true},
		{"n=:a\n\tAND\r\nattribute_exists(tags)", nil, item{":a": num("7")}, true},
		{"#s1 = :a AND #s = :b AND #s10 = :c", map[string]string{"#s": "name", "#s1": "n", "#s10": "flag"},
			item{":a": num("7"), ":b": str("alpha"), ":c": boolean(true)}, true},
	}
	for _, tt := range tests {
		got, err := f.holds("doc", "1", tt.expression, tt.names, tt.values)
		if err != nil || got != tt.want {
			t.Errorf("%s is %v, %v; want %v", tt.expression, got, err, tt.want)
		}
	}
}

func TestConditionOnMissingItem(t *testing.T) {
	f := newFixture(t)
	for expression, want := range map[string]bool{"attribute_not_exists(pk)": true, "attribute_exists(pk)": false} {
		if got, err := f.holds("no", "such", expression, nil, nil); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", expression, got, err, want)
		}
	}
}

func TestConditionsRefused(t *testing.T) {
	f := newFixture(t)
	f.put(document())
	tests := []struct {
		expression string
		names      map[string]string
		values     item
		message    string
	}{
		{"n = :nope", nil, nil, "An expression attribute value used in expression is not defined; attribute value: :nope"},
		{"#zz = :a", nil, item{":a": num("7")}, "An expression attribute name used in the document path is not defined; attribute name: #zz"},
		{"n = :a", nil, item{":a": num("7"), ":unused": num("1")}, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}"},
		{"n = :a", map[string]string{"#u": "x"}, item{":a": num("7")}, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}"},
		{"n = :a )) garbage", nil, item{":a": num("7")}, `Syntax error; token: ")", near: ":a ))"`},
		{"n = ", nil, item{":a": num("7")}, `Syntax error; token: "<EOF>"`},
		{"n == :a", nil, item{":a": num("7")}, "Syntax error"},
		{"n = :a AND", nil, item{":a": num("7")}, "Syntax error"},
		{"n ! :a", nil, item{":a": num("7")}, `Syntax error; token: "!"`},
		{"tags[x] = :a", nil, item{":a": num("7")}, "Syntax error"},
		{"n", nil, nil, "Syntax error"},
		{"name = :a", nil, item{":a": str("alpha")}, "Attribute name is a reserved keyword; reserved keyword: name"},
		{"((n = :a))", nil, item{":a": num("7")}, "The expression has redundant parentheses"},
		{"n BETWEEN :a AND :b", nil, item{":a": num("1"), ":b": str("x")}, "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:x}"},
		{"n BETWEEN :a AND :b", nil, item{":a": num("2"), ":b": num("1")}, "requires upper bound to be greater than or equal to lower bound"},
		{"nosuch(n)", nil, nil, "Invalid function name; function: nosuch"},
		{"begins_with(n)", nil, nil, "Incorrect number of operands for operator or function; operator or function: begins_with, number of operands: 1"},
		{"begins_with(n, :a)", nil, item{":a": num("7")}, "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
		{"attribute_exists(:a)", nil, item{":a": num("7")}, "Operator or function requires a document path; operator or function: attribute_exists"},
		{"attribute_type(n, :a)", nil, item{":a": str("X")}, "Invalid attribute type name found; type: X"},
		{"size(n)", nil, nil, "The function is not allowed to be used this way in an expression; function: size"},
		{"contains(n, :a) = :a", nil, item{":a": num("7")}, "The function is not allowed to be used this way in an expression; function: contains"},
		{"n < :a", nil, item{":a": boolean(true)}, "Incorrect operand type for operator or function; operator: <, operand type: BOOL"},
		{"n = n", nil, nil, "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]"},
		{" ", nil, nil, "The expression can not be empty"},
		{"n = :a OR n = " + repeated(4096), nil, item{":a": num("7")}, "Expression size has exceeded the maximum allowed size"},
		{"n = :a", nil, item{"a": num("7")}, `ExpressionAttributeValues contains invalid key: Syntax error; key: "a"`},
	}
	for _, tt := range tests {
		_, err := f.holds("doc", "1", tt.expression, tt.names, tt.values)
		t.Run(tt.expression[:min(40, len(tt.expression))], func(t *testing.T) { invalid(t, err, tt.message) })
	}
}
