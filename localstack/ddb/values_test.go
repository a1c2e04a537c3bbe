package ddb_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestValuesRoundTrip(t *testing.T) {
	f := newFixture(t)
	it := withKey("v", "1", item{
		"s": str("héé☃𝄞 \"quoted\" \\ \n\t\x01"), "empty": str(""), "b": bin(0, 255, 1), "eb": bin(), "t": boolean(true), "f": boolean(false), "nil": null(),
		"l": listOf(str("a"), listOf(), mapOf(item{})), "el": listOf(), "em": mapOf(item{}), "m": mapOf(item{"a.b": mapOf(item{"k": num("1")})}),
		"ss": strSet("b", "a", ""), "ns": numSet("3", "-1", "2"), "bs": binSet([]byte{1}, []byte{2, 3}),
	})
	f.put(it)
	same(t, "item", f.get("v", "1"), it)
}

func TestNumbers(t *testing.T) {
	f := newFixture(t)
	const n38 = "12345678901234567890123456789012345678"
	for given, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "+5": "5", "0010.500": "10.5", "1e3": "1000", "1.5E-3": "0.0015", "-12.340": "-12.34",
		n38: n38, "-0." + n38: "-0." + n38, "1" + n38[1:] + "000": "1" + n38[1:] + "000",
		"1E-130": "0." + zeros(129) + "1", "9.9999999999999999999999999999999999999E+125": "99999999999999999999999999999999999999" + zeros(88),
		"100": "100", "9007199254740993": "9007199254740993", ".5": "0.5", "5.": "5",
	} {
		f.put(withKey("n", "1", item{"n": num(given)}))
		same(t, given, f.get("n", "1")["n"], num(want))
	}
	for given, message := range map[string]string{
		n38 + "9": "Attempting to store more than 38 significant digits in a Number",
		"1e126":   "Number overflow. Attempting to store a number with magnitude larger than supported range",
		"-1e126":  "Number overflow", "1e-131": "Number underflow", "1e999999999999999999999": "Number overflow", "1e-99999999999999999999": "Number underflow",
		"abc": "The parameter cannot be converted to a numeric value: abc", "": "The parameter cannot be converted to a numeric value",
		"1.2.3": "cannot be converted", "0x10": "cannot be converted", "1e": "cannot be converted", "NaN": "cannot be converted", "1_000": "cannot be converted",
	} {
		_, err := f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: withKey("n", "1", item{"n": num(given)})})
		invalid(t, err, message)
	}
}

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
}

func TestArithmeticIsExact(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct{ n, expression, by, want string }{
		{"12345678901234567890123456789012345678", "ADD n :v", "1", "12345678901234567890123456789012345679"},
		{"9007199254740993", "ADD n :v", "2", "9007199254740995"},
		{"0.1", "SET n = n + :v", "0.2", "0.3"},
		{"1", "SET n = n - :v", "1.00000000000000000000000000000000001", "-0.00000000000000000000000000000000001"},
		{"9223372036854775807", "ADD n :v", "1", "9223372036854775808"},
		{"-1e125", "SET n = n + :v", "1e125", "0"},
	} {
		f.put(withKey("n", "1", item{"n": num(tt.n)}))
		got, err := f.update("n", "1", tt.expression, nil, item{":v": num(tt.by)})
		if err != nil {
			t.Fatalf("%s, %s %s: %v", tt.n, tt.expression, tt.by, err)
		}
		same(t, tt.n+" "+tt.expression+" "+tt.by, got["n"], num(tt.want))
	}
	f.put(withKey("n", "1", item{"n": num("1e125")}))
	_, err := f.update("n", "1", "ADD n :v", nil, item{":v": num("1")})
	invalid(t, err, "38 significant digits")
	f.put(withKey("n", "1", item{"n": num("9e125")}))
	_, err = f.update("n", "1", "ADD n :v", nil, item{":v": num("9e125")})
	invalid(t, err, "Number overflow")
}

func TestItemsRefused(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeAll))
	deep := str("bottom")
	for range 33 {
		deep = listOf(deep)
	}
	tests := []struct {
		name    string
		item    item
		message string
	}{
		{"empty set", withKey("v", "1", item{"s": strSet()}), ""},
		{"repeated member", withKey("v", "1", item{"s": strSet("a", "a")}), "Input collection [a, a] contains duplicates."},
		{"repeated number", withKey("v", "1", item{"s": numSet("1", "1.0")}), "Input collection contains duplicates"},
		{"false null", withKey("v", "1", item{"s": &types.AttributeValueMemberNULL{Value: false}}), "Null attribute value types must have the value of true"},
		{"empty partition key", keyOf("", "1"), "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"},
		{"empty sort key", keyOf("v", ""), "The AttributeValue for a key attribute cannot contain an empty string value. Key: sk"},
		{"missing sort key", item{"pk": str("v")}, "Missing the key sk in the item"},
		{"wrong key type", item{"pk": num("1"), "sk": str("1")}, "Type mismatch for key pk expected: S actual: N"},
		{"400 KB", withKey("v", "1", item{"s": str(repeated(400 << 10))}), "Item size has exceeded the maximum allowed size"},
		{"partition key of 2049 bytes", keyOf(repeated(2049), "1"), "Size of hashkey has exceeded the maximum size limit"},
		{"sort key of 1025 bytes", keyOf("v", repeated(1025)), "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"},
		{"33 levels", withKey("v", "1", item{"d": deep}), "Nesting Levels have exceeded supported limits"},
		{"index key of the wrong type", withKey("v", "1", item{"gpk": num("1")}), "Type mismatch for Index Key gpk Expected: S Actual: N IndexName: gsi"},
		{"empty index key", withKey("v", "1", item{"gpk": str("")}), "The AttributeValue for a key attribute cannot contain an empty string value. IndexName: gsi, IndexKey: gpk"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: tt.item})
			invalid(t, err, tt.message)
		})
	}
	fits := withKey("v", "1", item{"s": str(repeated(400<<10 - len("pkvsk1s")))})
	f.put(fits)
	f.put(keyOf(repeated(2048), repeated(1024)))
	_, err := f.update("v", "2", "SET gpk = :n", nil, item{":n": num("1")})
	invalid(t, err, "The update expression attempted to update the secondary index key to unsupported type")
}

func TestKeysRefused(t *testing.T) {
	f := newFixture(t)
	for name, key := range map[string]item{
		"missing part": {"pk": str("a")}, "extra part": withKey("a", "b", item{"c": str("c")}), "wrong type": {"pk": str("a"), "sk": num("1")},
	} {
		_, err := f.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &f.table, Key: key})
		t.Run(name, func(t *testing.T) { invalid(t, err, "The provided key element does not match the schema") })
	}
	_, err := f.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: ptr("no-such-table"), Key: keyOf("a", "b")})
	refused(t, err, "ResourceNotFoundException", "Requested resource not found")
}

func TestKeysDoNotCollide(t *testing.T) {
	f := newFixture(t)
	keys := [][2]string{{"a|S:b", "c"}, {"a", "b|S:c"}, {"a\x00", "b"}, {"a", "\x00b"}, {"a\x00\xc3\xbf", "b"}, {"a", "b"}}
	for _, k := range keys {
		f.put(withKey(k[0], k[1], item{"who": str(k[0] + "/" + k[1])}))
	}
	for _, k := range keys {
		same(t, k[0]+"/"+k[1], f.get(k[0], k[1])["who"], str(k[0]+"/"+k[1]))
	}
}

func TestConditionalWrites(t *testing.T) {
	f := newFixture(t)
	f.put(withKey("c", "1", item{"v": num("1")}))
	writes := map[string]func() error{
		"put": func() error {
			_, err := f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("c", "1"),
				ConditionExpression: ptr("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
			return err
		},
		"update": func() error {
			_, err := f.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("c", "1"), UpdateExpression: ptr("SET v = :n"),
				ConditionExpression: ptr("v = :n"), ExpressionAttributeValues: item{":n": num("9")},
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
			return err
		},
		"delete": func() error {
			_, err := f.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: keyOf("c", "1"), ConditionExpression: ptr("v > :n"),
				ExpressionAttributeValues: item{":n": num("9")}, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
			return err
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			var failed *types.ConditionalCheckFailedException
			if err := write(); !errors.As(err, &failed) {
				t.Fatalf("got %v", err)
			}
			same(t, "old item", failed.Item, withKey("c", "1", item{"v": num("1")}))
		})
	}
}
