package ddb_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// before is the item every update is tried on, without its key.
func before() item {
	return item{
		"n": num("10"), "l": listOf(str("a"), str("b"), str("c")), "m": mapOf(item{"x": num("1"), "arr": listOf(str("p"), str("q"))}),
		"labels": strSet("a", "b"), "nset": numSet("1", "2"), "gone": str("g"), "s": str("o"),
	}
}

func TestUpdates(t *testing.T) {
	f := newFixture(t)
	tests := []struct {
		expression string
		names      map[string]string
		values     item
		changed    item // against before; nil values are gone
	}{
		{"SET n = n + :v", nil, item{":v": num("1")}, item{"n": num("11")}},
		{"SET n = n - :v", nil, item{":v": num("10.5")}, item{"n": num("-0.5")}},
		{"SET n = :v - n", nil, item{":v": num("1")}, item{"n": num("-9")}},
		{"SET d = :a + :b", nil, item{":a": num("0.1"), ":b": num("0.2")}, item{"d": num("0.3")}},
		{"SET a = if_not_exists(a, :z) + :v", nil, item{":v": num("1"), ":z": num("0")}, item{"a": num("1")}},
		{"SET a = if_not_exists(n, :z)", nil, item{":z": num("0")}, item{"a": num("10")}},
		{"SET a = if_not_exists(m.y, m.x)", nil, nil, item{"a": num("1")}},
		{"SET l = list_append(l, :v)", nil, item{":v": listOf(str("d"))}, item{"l": listOf(str("a"), str("b"), str("c"), str("d"))}},
		{"SET l = list_append(:v, l)", nil, item{":v": listOf(str("z"))}, item{"l": listOf(str("z"), str("a"), str("b"), str("c"))}},
		{"SET q = list_append(if_not_exists(q, :e), :v)", nil, item{":v": listOf(str("b")), ":e": listOf()}, item{"q": listOf(str("b"))}},
		{"SET m.x = :v, m.#y = n", map[string]string{"#y": "y"}, item{":v": num("5")},
			item{"m": mapOf(item{"x": num("5"), "y": num("10"), "arr": listOf(str("p"), str("q"))})}},
		{"SET m.arr[1] = :v", nil, item{":v": num("5")}, item{"m": mapOf(item{"x": num("1"), "arr": listOf(str("p"), num("5"))})}},
		{"SET l[9] = :a, l[7] = :b", nil, item{":a": str("9"), ":b": str("7")}, item{"l": listOf(str("a"), str("b"), str("c"), str("7"), str("9"))}},
		{"SET l[0] = :v REMOVE l[1]", nil, item{":v": str("Z")}, item{"l": listOf(str("Z"), str("c"))}},
		{"REMOVE l[0], l[1]", nil, nil, item{"l": listOf(str("c"))}},
		{"REMOVE l[7]", nil, nil, item{}},
		{"SET l[5] = :v REMOVE l[0]", nil, item{":v": str("d")}, item{"l": listOf(str("b"), str("c"), str("d"))}},
		{"SET a = s, s = n, n = :v", nil, item{":v": num("0")}, item{"a": str("o"), "s": num("10"), "n": num("0")}},
		{"SET a = gone REMOVE gone", nil, nil, item{"a": str("g"), "gone": nil}},
		{"SET l[0] = l[1], l[1] = l[0]", nil, nil, item{"l": listOf(str("b"), str("a"), str("c"))}},
		{"SET b = n ADD n :v", nil, item{":v": num("1")}, item{"b": num("10"), "n": num("11")}},
		{"REMOVE gone, m.x, nothere", nil, nil, item{"gone": nil, "m": mapOf(item{"arr": listOf(str("p"), str("q"))})}},
		{"ADD n :v, m.x :v, fresh :v", nil, item{":v": num("5")},
			item{"n": num("15"), "fresh": num("5"), "m": mapOf(item{"x": num("6"), "arr": listOf(str("p"), str("q"))})}},
		{"ADD labels :v", nil, item{":v": strSet("b", "c")}, item{"labels": strSet("a", "b", "c")}},
		{"ADD nset :v", nil, item{":v": numSet("2.0", "30")}, item{"nset": numSet("1", "2", "30")}},
		{"ADD fresh :v", nil, item{":v": binSet([]byte{1})}, item{"fresh": binSet([]byte{1})}},
		{"DELETE labels :v", nil, item{":v": strSet("a", "zz")}, item{"labels": strSet("b")}},
		{"DELETE labels :v", nil, item{":v": strSet("a", "b")}, item{"labels": nil}},
		{"DELETE nothere :v", nil, item{":v": strSet("a")}, item{}},
		{"SET a = :v REMOVE gone ADD n :one DELETE labels :set", nil, item{":v": str("x"), ":one": num("1"), ":set": strSet("a")},
			item{"a": str("x"), "gone": nil, "n": num("11"), "labels": strSet("b")}},
		{"set #a=:v,\n#b =:v", map[string]string{"#a": "add", "#b": "dotted.name"}, item{":v": str("x")}, item{"add": str("x"), "dotted.name": str("x")}},
		{"SET n = (n + :v)", nil, item{":v": num("1")}, item{"n": num("11")}},
		{"SET n = if_not_exists(nope, :z) + if_not_exists(n, :z)", nil, item{":z": num("4")}, item{"n": num("14")}},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			f.put(withKey("u", "1", before()))
			got, err := f.update("u", "1", tt.expression, tt.names, tt.values)
			if err != nil {
				t.Fatal(err)
			}
			want := withKey("u", "1", before())
			for name, v := range tt.changed {
				want[name] = v
				if v == nil {
					delete(want, name)
				}
			}
			same(t, "answer", got, want)
			same(t, "item", f.get("u", "1"), want)
		})
	}
}

func TestUpdatesRefused(t *testing.T) {
	f := newFixture(t)
	f.put(withKey("u", "1", before()))
	const path = "The document path provided in the update expression is invalid for update"
	tests := []struct {
		expression string
		values     item
		message    string
	}{
		{"SET n :v", item{":v": num("1")}, `Syntax error; token: ":v", near: "n :v"`},
		{"SET a = :zz", nil, "An expression attribute value used in expression is not defined; attribute value: :zz"},
		{"SET q = q + :v", item{":v": num("1")}, "The provided expression refers to an attribute that does not exist in the item"},
		{"SET q = nothere", nil, "The provided expression refers to an attribute that does not exist in the item"},
		{"SET s = s + :v", item{":v": num("1")}, "An operand in the update expression has an incorrect data type"},
		{"SET n = n + :v", item{":v": str("1")}, "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
		{"SET l = list_append(l, :v)", item{":v": str("1")}, "Incorrect operand type for operator or function; operator or function: list_append, operand type: S"},
		{"SET l = list_append(n, l)", nil, "An operand in the update expression has an incorrect data type"},
		{"ADD s :v", item{":v": num("1")}, "An operand in the update expression has an incorrect data type"},
		{"ADD labels :v", item{":v": numSet("1")}, "An operand in the update expression has an incorrect data type"},
		{"ADD n :v", item{":v": str("1")}, "Incorrect operand type for operator or function; operator: ADD, operand type: STRING"},
		{"DELETE labels :v", item{":v": num("1")}, "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER"},
		{"DELETE n :v", item{":v": strSet("1")}, "An operand in the update expression has an incorrect data type"},
		{"SET m = :a, m.x = :b", item{":a": mapOf(item{}), ":b": num("1")}, "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m], path two: [m, x]"},
		{"SET m.x = :b REMOVE m", item{":b": num("1")}, "Two document paths overlap with each other"},
		{"SET n = :b ADD n :b", item{":b": num("1")}, "Two document paths overlap with each other"},
		{"SET m.x = :b, m[0] = :b", item{":b": num("1")}, "Two document paths conflict with each other"},
		{"SET zz.x = :b", item{":b": num("1")}, path},
		{"SET n.x = :b", item{":b": num("1")}, path},
		{"SET l.x = :b", item{":b": num("1")}, path},
		{"SET m[0] = :b", item{":b": num("1")}, path},
		{"SET m.y.z = :b", item{":b": num("1")}, path},
		{"REMOVE zz.x", nil, path},
		{"ADD zz.x :b", item{":b": num("1")}, path},
		{"SET a = nosuchfn(n, :b)", item{":b": num("1")}, "Invalid function name; function: nosuchfn"},
		{"SET a = size(l)", nil, "The function is not allowed in an update expression; function: size"},
		{"SET a = if_not_exists(:b, :b)", item{":b": num("1")}, "Operator or function requires a document path; operator or function: if_not_exists"},
		{"SET a = if_not_exists(n)", nil, "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1"},
		{"SET a = :b SET c = :b", item{":b": num("1")}, `The "SET" section can only be used once in an update expression;`},
		{"SET a = :b, ", item{":b": num("1")}, `Syntax error; token: "<EOF>"`},
		{"SET a = n + n + n", nil, "Syntax error"},
		{"SET", nil, "Syntax error"},
		{"UPSERT a = :b", item{":b": num("1")}, `Syntax error; token: "UPSERT"`},
		{"SET status = :b", item{":b": num("1")}, "Attribute name is a reserved keyword; reserved keyword: status"},
		{"SET pk = :b", item{":b": str("1")}, "Cannot update attribute pk. This attribute is part of the key"},
		{"REMOVE sk", nil, "Cannot update attribute sk. This attribute is part of the key"},
		{"SET a = :b", item{":b": str(repeated(410 * 1024))}, "Item size to update has exceeded the maximum allowed size"},
		{"SET a = :b", item{":b": num("1"), ":c": num("1")}, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:c}"},
	}
	for _, tt := range tests {
		_, err := f.update("u", "1", tt.expression, nil, tt.values)
		t.Run(tt.expression, func(t *testing.T) { invalid(t, err, tt.message) })
	}
	same(t, "item after refused updates", f.get("u", "1"), withKey("u", "1", before()))
}

func TestUpdateMakesMissingItem(t *testing.T) {
	f := newFixture(t)
	got, err := f.update("u", "new", "SET a = :v ADD n :v", nil, item{":v": num("1")})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "item", got, withKey("u", "new", item{"a": num("1"), "n": num("1")}))

	if _, err := f.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("u", "bare")}); err != nil {
		t.Fatal(err)
	}
	same(t, "item of an update without expression", f.get("u", "bare"), keyOf("u", "bare"))
}

func TestReturnValues(t *testing.T) {
	f := newFixture(t)
	tests := []struct {
		want types.ReturnValue
		item item
	}{
		{types.ReturnValueNone, nil},
		{types.ReturnValueAllOld, withKey("u", "1", before())},
		{types.ReturnValueUpdatedOld, item{"n": num("10"), "gone": str("g"), "m": mapOf(item{"x": num("1")})}},
		{types.ReturnValueUpdatedNew, item{"n": num("1"), "m": mapOf(item{"x": num("2")})}},
	}
	for _, tt := range tests {
		f.put(withKey("u", "1", before()))
		out, err := f.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &f.table, Key: keyOf("u", "1"), ReturnValues: tt.want,
			UpdateExpression:          ptr("SET n = :one, m.x = :two REMOVE gone"),
			ExpressionAttributeValues: item{":one": num("1"), ":two": num("2")},
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, string(tt.want), out.Attributes, tt.item)
	}
	put, err := f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: withKey("u", "2", before()), ReturnValues: types.ReturnValueAllOld})
	if err != nil || put.Attributes != nil {
		t.Errorf("put of a new item returns %v, %v; want nothing", put, err)
	}
	deleted, err := f.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: keyOf("u", "2"), ReturnValues: types.ReturnValueAllOld})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "deleted", deleted.Attributes, withKey("u", "2", before()))
	_, err = f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("u", "2"), ReturnValues: types.ReturnValueAllNew})
	invalid(t, err, "Return values set to invalid value")
}
