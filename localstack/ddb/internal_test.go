package ddb

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// decimals draws numbers that a Number may be, with their exact value: short integers often, extremes sometimes.
func decimals(t *rapid.T, label string) (string, *big.Rat) {
	var s string
	switch rapid.IntRange(0, 3).Draw(t, label+" shape") {
	case 0:
		s = fmt.Sprint(rapid.Int64().Draw(t, label))
	case 1:
		s = fmt.Sprint(rapid.IntRange(-1000, 1000).Draw(t, label))
	case 2:
		s = rapid.StringMatching(`-?[0-9]{1,19}\.[0-9]{1,19}`).Draw(t, label)
	case 3:
		s = rapid.StringMatching(`-?[1-9]\.[0-9]{0,37}`).Draw(t, label) + fmt.Sprintf("E%d", rapid.IntRange(-90, 125).Draw(t, label+" exponent"))
	}
	exact, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("drew %q", s)
	}
	return s, exact
}

// fits says whether a value is a Number: 38 digits and the range of magnitudes.
func fits(r *big.Rat) bool {
	if r.Sign() == 0 {
		return true
	}
	// Scale to an integer by more than any Number's fraction needs, and look at its digits.
	scaled := new(big.Rat).Mul(new(big.Rat).Abs(r), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(400), nil)))
	if !scaled.IsInt() {
		return false
	}
	digits := scaled.Num().String()
	leading := len(digits) - 1 - 400
	return len(strings.TrimRight(digits, "0")) <= maxDigits && leading <= maxExponent && leading >= minExponent
}

func TestNumbersAgreeWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sa, ra := decimals(t, "a")
		sb, rb := decimals(t, "b")
		a, errA := parseNumber(sa)
		b, errB := parseNumber(sb)
		if (errA == nil) != fits(ra) {
			t.Fatalf("%s parses as %q, %v", sa, a, errA)
		}
		if errA != nil || errB != nil {
			return
		}
		if got, _ := new(big.Rat).SetString(string(a)); got.Cmp(ra) != 0 {
			t.Fatalf("%s became %s", sa, a)
		}
		if again, err := parseNumber(string(a)); again != a || err != nil {
			t.Fatalf("%s is not in returned form: %q, %v", a, again, err)
		}
		if got := compareNumbers(a, b); got < 0 != (ra.Cmp(rb) < 0) || got > 0 != (ra.Cmp(rb) > 0) {
			t.Fatalf("%s compares to %s as %d", a, b, got)
		}
		if got := strings.Compare(a.key(), b.key()); got != ra.Cmp(rb) {
			t.Fatalf("keys of %s and %s compare as %d", a, b, got)
		}
		checkSum(t, a, b, new(big.Rat).Add(ra, rb), a.plus)
		checkSum(t, a, b, new(big.Rat).Sub(ra, rb), a.minus)
	})
}

func checkSum(t *rapid.T, a, b number, want *big.Rat, combine func(number) (number, error)) {
	got, err := combine(b)
	if !fits(want) {
		if err == nil {
			t.Fatalf("%s and %s make %s, which is no Number", a, b, got)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s and %s: %v", a, b, err)
	}
	if r, _ := new(big.Rat).SetString(string(got)); r.Cmp(want) != 0 {
		t.Fatalf("%s and %s make %s, want %s", a, b, got, want.FloatString(200))
	}
	if again, err := parseNumber(string(got)); again != got || err != nil {
		t.Fatalf("%s is not in returned form", got)
	}
}

// The short way of adding small integers and the long way through decimals must agree.
func TestShortAndLongSumsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Custom(func(t *rapid.T) number {
			return number(fmt.Sprint(rapid.Int64Range(-999999999999999999, 999999999999999999).Draw(t, "n")))
		})
		a, b, negate := draw.Draw(t, "a"), draw.Draw(t, "b"), rapid.Bool().Draw(t, "negate")
		short, errShort := a.combine(b, negate)
		long, errLong := a.combineExactly(b, negate)
		if short != long || errShort != nil || errLong != nil {
			t.Fatalf("%s and %s: %s, %v in short; %s, %v at length", a, b, short, errShort, long, errLong)
		}
	})
}

func TestNumberSize(t *testing.T) {
	for n, want := range map[number]int{"0": 1, "1": 2, "10": 2, "12": 2, "100": 2, "123": 3, "1234": 3, "-1": 3, "0.1": 2, "0.01": 2, "1.5": 3, "12.5": 3} {
		if got := n.size(); got != want {
			t.Errorf("%s takes %d bytes, want %d", n, got, want)
		}
	}
}

// values draws any attribute value.
func values(depth int) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		shapes := 9
		if depth == 0 {
			shapes = 7
		}
		switch rapid.IntRange(0, shapes-1).Draw(t, "shape") {
		case 0:
			return text(rapid.String().Draw(t, "text"))
		case 1:
			s, _ := decimals(t, "number")
			n, err := parseNumber(s)
			if err != nil {
				return number("0")
			}
			return n
		case 2:
			return binaryValue(rapid.SliceOf(rapid.Byte()).Draw(t, "binary"))
		case 3:
			return boolean(rapid.Bool().Draw(t, "boolean"))
		case 4:
			return null{}
		case 5:
			return drawSet(t, kindSS, func(s string) value { return text(s) })
		case 6:
			return drawSet(t, kindBS, func(s string) value { return binaryValue(s) })
		case 7:
			return list(rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "list"))
		}
		return items(depth-1).Draw(t, "map")
	})
}

func drawSet(t *rapid.T, of kind, member func(string) value) value {
	var members []value
	for _, s := range rapid.SliceOfNDistinct(rapid.String(), 1, 4, rapid.ID).Draw(t, "members") {
		members = append(members, member(s))
	}
	s, _ := newSet(of, members)
	return s
}

func items(depth int) *rapid.Generator[item] {
	return rapid.Custom(func(t *rapid.T) item {
		return item(rapid.MapOfN(rapid.String(), values(depth), 0, 4).Draw(t, "attributes"))
	})
}

func TestItemsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := items(3).Draw(t, "item")
		b, err := json.Marshal(it)
		if err != nil {
			t.Fatal(err)
		}
		var back item
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !equal(it, back) {
			t.Fatalf("%s came back as %s", b, appendObject(nil, back))
		}
	})
}

// Text must mean to the hand-written decoder what it means to encoding/json.
func FuzzText(f *testing.F) {
	for _, s := range []string{`"plain"`, `"\u00e9\ud834\udd1e\n"`, `"\ud834"`, `"\ud834\u0041"`, `"\"\\\/\b\f\r\t"`, `"é"`, `""`, `"\u12"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want string
		if !json.Valid([]byte(s)) || json.Unmarshal([]byte(s), &want) != nil || strings.ToValidUTF8(s, "") != s {
			return
		}
		r := reader{b: []byte(s)}
		if got, err := r.text(); r.peek() == 0 && (err != nil || got != want) && strings.HasPrefix(strings.TrimSpace(s), `"`) {
			t.Errorf("%s reads as %q, %v; want %q", s, got, err, want)
		}
	})
}

func TestEncodedKeysKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := keySchema{hash: keyPart{"h", kindS}, sort: keyPart{"s", kindB}}
		draw := func(label string) item {
			small := rapid.SampledFrom([]string{"a", "a\x00", "a\x00\x00", "a\x00\xff", "a\xff", "a\xff\xff", "ab", "b"})
			return item{"h": text(small.Draw(t, label+" hash")), "s": binaryValue(small.Draw(t, label+" sort") + small.Draw(t, label+" more"))}
		}
		a, b := draw("a"), draw("b")
		ka, kb := schema.encode(a), schema.encode(b)
		if equalItems(a, b) != (ka == kb) {
			t.Fatalf("%v and %v encode as %q and %q", a, b, ka, kb)
		}
		if a["h"] != b["h"] {
			return
		}
		if want, _ := compare(a["s"], b["s"]); strings.Compare(ka, kb) != want {
			t.Fatalf("%q and %q: want order %d", ka, kb, want)
		}
		bound := after(ka[:4])
		if bound != "" && (ka >= bound || bound <= ka[:4]) {
			t.Fatalf("%q does not bound %q", bound, ka)
		}
	})
}

// The skip list must behave as a sorted map.
func TestOrderedAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, model := newOrdered(), map[string]int{}
		key := rapid.StringMatching(`[a-d]{1,3}`)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				r := row{key: key.Draw(t, "key"), size: rapid.IntRange(0, 9).Draw(t, "size")}
				o.put(r)
				model[r.key] = r.size
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				o.delete(k)
				delete(model, k)
			},
			"": func(t *rapid.T) {
				want := sortedKeys(model)
				from := key.Draw(t, "from")
				i, _ := slices.BinarySearch(want, from)
				var ahead, back []string
				for n := o.firstFrom(from); n != nil; n = n.next[0] {
					ahead = append(ahead, n.key)
				}
				for n := o.lastBefore(from); n != nil; n = n.prev {
					back = append(back, n.key)
				}
				slices.Reverse(back)
				bytes := 0
				for _, size := range model {
					bytes += size
				}
				if !slices.Equal(ahead, want[i:]) || !slices.Equal(back, want[:i]) || o.len() != len(want) || o.bytes != bytes {
					t.Fatalf("from %s: back %v, ahead %v, %d bytes; want %v, %d bytes", from, back, ahead, o.bytes, want, bytes)
				}
			},
		})
	})
}

func FuzzExpressions(f *testing.F) {
	for _, s := range []string{
		"a = :a AND NOT (#b[1].c BETWEEN :a AND :b OR size(d) IN (:a, :b))", "attribute_exists(a) or begins_with(#b, :a)", "((a = :a))", "contains(:a, a)",
		"SET a = if_not_exists(b, :a) + :b, #b[0] = list_append(:a, c) REMOVE d.e ADD f :a DELETE g :b", "set a=(:a-:b)", "a, b.c[1], #b", "(((", "a.b.", ":a <> :b",
	} {
		f.Add(s)
	}
	names := map[string]string{"#b": "bee", "#c": "sea"}
	given := item{":a": number("1"), ":b": list{number("2"), text("x")}, ":c": set{kindNS, []value{number("1")}}}
	it := item{"a": number("1"), "bee": list{item{"c": text("v")}}, "c": list{}, "d": item{"e": null{}}, "g": set{kindNS, []value{number("1"), number("2")}}}
	f.Fuzz(func(t *testing.T, src string) {
		was := string(appendObject(nil, it))
		ph := func() *placeholders {
			p, err := newPlaceholders(names, given)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if c, err := parseCondition("ConditionExpression", src, ph()); err == nil {
			if (not{c}).holds(it) == c.holds(it) {
				t.Errorf("%s is both true and false", src)
			}
			walkOperands(c, func(operand) {})
			c.holds(nil)
		}
		if u, err := parseUpdate(src, ph()); err == nil {
			fuzzUpdate(t, u, it, src)
		}
		if p, err := parseProjection(src, ph()); err == nil {
			kept := p.project(it)
			if !equal(p.project(kept), kept) && !strings.Contains(src, "[") {
				t.Errorf("%s projects its own projection to something else", src)
			}
		}
		if now := string(appendObject(nil, it)); now != was {
			t.Errorf("%s changed the item it only read:\n%s", src, cmp.Diff(was, now))
		}
	})
}

func fuzzUpdate(t *testing.T, u *update, it item, src string) {
	after, err := u.apply(it)
	if err != nil {
		return
	}
	for _, a := range u.actions {
		if plainSet, ok := a.to.(plain); ok && len(a.at) == 1 {
			if want := plainSet.of.eval(it); !equal(a.at.in(after), want) {
				t.Errorf("%s: %s is %s, want %s", src, a.at, describe(a.at.in(after)), describe(want))
			}
		}
		if a.kind == actRemove && len(a.at) == 1 && a.at.in(after) != nil {
			t.Errorf("%s: %s is still there", src, a.at)
		}
	}
}
