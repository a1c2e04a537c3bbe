package dataset

import (
	"strings"
	"testing"

	"pintu/internal/fault"
)

// accept and refuse are cells of one field; accept maps them to canonical texts.
func TestTypes(t *testing.T) {
	cases := []struct {
		name, field string
		accept      map[string]string
		refuse      []string
	}{
		{"default type", `{"name":"x"}`, map[string]string{"a": "a", " 1 ": " 1 "}, nil},
		{"integer", `{"name":"x","type":"integer"}`,
			map[string]string{"0": "0", "-0": "0", "+7": "7", "007": "7", "-12": "-12"}, []string{"1.0", "1E3", "1,000", "a", "-", "0x1", " 1", "١"}},
		{"number", `{"name":"x","type":"number"}`,
			map[string]string{"1.50": "1.5", ".5": "0.5", "5.": "5", "-1e2": "-100", "-0.0": "0"}, []string{"NaN", "INF", "-INF", "1,5", "$5", "5%", "1 000", ".", "1E"}},
		{"decimal comma", `{"name":"x","type":"number","decimalChar":","}`,
			map[string]string{"9,99": "9.99", "9": "9", ",5": "0.5", "1,5E2": "150"}, []string{"9.99", "9,9,9", "1.000,5"}},
		{"groups", `{"name":"x","type":"number","groupChar":","}`,
			map[string]string{"1,000": "1000", "12,345,678.90": "12345678.9", "12,34,567": "1234567", "-1,000": "-1000", "1000": "1000", "1,000E2": "100000"},
			[]string{"1,5", "1,50", ",100", "1,,000", "1000,000", "1,000,00", "1.000,5", "1,0,000", "1,00E2", "1,000,"}},
		{"groups of an integer", `{"name":"x","type":"integer","groupChar":"."}`,
			map[string]string{"1.000": "1000", "1000": "1000"}, []string{"1.5", "1.0", "1.000.5"}},
		{"groups of no-break spaces", `{"name":"x","type":"number","groupChar":"\u00a0","decimalChar":","}`,
			map[string]string{"1\u00a0234,5": "1234.5"}, []string{"1 234,5", "1.5"}},
		{"not bare", `{"name":"x","type":"number","bareNumber":false}`,
			map[string]string{"$95": "95", "95%": "95", "EUR 9.50 net": "9.5", "$-95": "-95", "-$95": "-95", "- 95": "-95", "-95": "-95", "+95": "95", "Rp.5": "0.5", "12": "12", "1E2": "100"},
			[]string{"(95)", "95-", "\u221295", "95\u2013", "a-b 95", "--95", "five", "", "5 km 2", "$"}},
		{"not bare, comma", `{"name":"x","type":"number","bareNumber":false,"decimalChar":",","groupChar":"."}`,
			map[string]string{"Rp 1.500,50": "1500.5", "1.500 EUR": "1500"}, []string{"1,5,5 EUR", "1.50 EUR"}},
		{"not bare integer", `{"name":"x","type":"integer","bareNumber":false}`,
			map[string]string{"5 pcs": "5", "#5": "5"}, []string{"5.5 pcs", "(5)"}},
		{"boolean", `{"name":"x","type":"boolean"}`,
			map[string]string{"true": "true", "True": "true", "TRUE": "true", "1": "true", "false": "false", "False": "false", "FALSE": "false", "0": "false"},
			[]string{"yes", "Y", "ya", "t", "tRUE", " true"}},
		{"boolean lists", `{"name":"x","type":"boolean","trueValues":["ya"],"falseValues":["tidak","no"]}`,
			map[string]string{"ya": "true", "tidak": "false", "no": "false"}, []string{"true", "1", "Ya"}},
		{"date", `{"name":"x","type":"date"}`,
			map[string]string{"2025-01-05": "2025-01-05", "2000-02-29": "2000-02-29", "0001-01-01": "0001-01-01", "9999-12-31": "9999-12-31"},
			[]string{"1900-02-29", "2025-04-31", "2025-13-01", "2025-00-01", "2025-01-00", "0000-01-01", "25-01-05", "2025/01/05", "2025-01-05Z", "2025-1-05", " 2025-01-05", "10000-01-01"}},
		{"time", `{"name":"x","type":"time"}`,
			map[string]string{"00:00:00": "00:00:00", "23:59:59": "23:59:59", "10:15:30.500": "10:15:30.5", "10:15:30.0": "10:15:30", "10:15:30Z": "10:15:30Z",
				"01:15:30+07:00": "18:15:30Z", "10:15:30-00:00": "10:15:30Z", "10:15:30.123456789": "10:15:30.123456789"},
			[]string{"24:00:00", "10:60:00", "10:15:60", "10:15", "1:15:30", "10:15:30+0700", "10:15:30+15:00", "10:15:30.", "10:15:30.1234567890", "T10:15:30"}},
		{"datetime", `{"name":"x","type":"datetime"}`,
			map[string]string{"2026-07-27T10:15:30": "2026-07-27T10:15:30", "2026-07-27T10:15:30Z": "2026-07-27T10:15:30Z", "2026-07-27T10:15:30+00:00": "2026-07-27T10:15:30Z",
				"2026-01-01T03:15:30.250+07:00": "2025-12-31T20:15:30.25Z", "2024-02-28T23:30:00-01:00": "2024-02-29T00:30:00Z"},
			[]string{"2026-07-27", "2026-07-27 10:15:30", "2026-07-27t10:15:30", "2026-07-27T10:15:30z", "2026-07-27T10:15", "2026-02-30T10:15:30", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"}},
		{"year", `{"name":"x","type":"year"}`, map[string]string{"2025": "2025", "0001": "0001"}, []string{"25", "0000", "20255", "-2025", "2025Z"}},
		{"yearmonth", `{"name":"x","type":"yearmonth"}`, map[string]string{"2025-01": "2025-01"}, []string{"2025-13", "2025-1", "2025", "2025-01-01", "0000-01"}},
		{"email", `{"name":"x","type":"string","format":"email"}`,
			map[string]string{"siti@example.com": "siti@example.com", "a.b+c@x-y.co.id": "a.b+c@x-y.co.id", "jos\u00e9@b\u00fccher.example": "jos\u00e9@b\u00fccher.example"},
			[]string{"siti", "@example.com", "siti@", "siti@localhost", "a b@example.com", "a@b@c.d", "a@-x.com", "a@x..com", ".a@x.com", "a..b@x.com", strings.Repeat("a", 65) + "@x.com"}},
		{"uri", `{"name":"x","type":"string","format":"uri"}`,
			map[string]string{"https://example.com/a?b=%20#c": "https://example.com/a?b=%20#c", "urn:isbn:123": "urn:isbn:123", "mailto:a@b.c": "mailto:a@b.c"},
			[]string{"example.com", "//example.com", "https://exa mple.com", "1http://x", ":x", "http:", "http://x/%2", "http://x/%zz", "http://x/<a>", "http://x/\u00e9"}},
		{"uuid", `{"name":"x","type":"string","format":"uuid"}`,
			map[string]string{"123E4567-e89b-12d3-a456-426614174000": "123E4567-e89b-12d3-a456-426614174000"},
			[]string{"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-42661417400g", "123e4567-e89b-12d3-a456_426614174000"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := mustCompile(t, strings.Replace(oneField(c.field), `"primaryKey":"id"`, `"primaryKey":"id","missingValues":["-"]`, 1))
			b := bind(t, s, "id", "x")
			var row Row
			for cell, want := range c.accept {
				if v := b.Check(cells("k", cell), &row); v != nil {
					t.Errorf("%q: %+v, want accepted", cell, v)
				} else if got := valueOf(s, &row, "x"); got != want {
					t.Errorf("%q = %q, want %q", cell, got, want)
				}
			}
			for _, cell := range c.refuse {
				if cell == "-" {
					continue
				}
				if v := b.Check(cells("k", cell), &row); v == nil || v.Code != fault.TypeMismatch || v.Field != "x" {
					t.Errorf("%q: %+v, want TYPE_MISMATCH", cell, v)
				}
			}
		})
	}
}

func TestConstraints(t *testing.T) {
	cases := []struct {
		name, field    string
		accept, refuse []string
	}{
		{"minLength counts characters", `{"name":"x","type":"string","constraints":{"minLength":3}}`, []string{"abc", "éçà", "日本語"}, []string{"ab", "éç"}},
		{"maxLength counts characters", `{"name":"x","type":"string","constraints":{"maxLength":3}}`, []string{"", "abc", "日本語"}, []string{"abcd"}},
		{"minimum", `{"name":"x","type":"integer","constraints":{"minimum":1}}`, []string{"1", "01", "2", "99999999999999999999"}, []string{"0", "-1"}},
		{"maximum", `{"name":"x","type":"number","constraints":{"maximum":0.1}}`, []string{"0.1", "0.10", "-5", "0.0999999999999999999999999999"}, []string{"0.1000000000000000000000000001", "1"}},
		{"exclusiveMinimum", `{"name":"x","type":"number","constraints":{"exclusiveMinimum":"0"}}`, []string{"1E-130", "0.1"}, []string{"0", "-0", "-0.1"}},
		{"exclusiveMaximum", `{"name":"x","type":"integer","constraints":{"exclusiveMaximum":100}}`, []string{"99"}, []string{"100", "101"}},
		{"minimum beyond floats", `{"name":"x","type":"integer","constraints":{"minimum":9007199254740993}}`, []string{"9007199254740993"}, []string{"9007199254740992"}},
		{"date bounds", `{"name":"x","type":"date","format":"%d/%m/%Y","constraints":{"minimum":"01/02/2025","exclusiveMaximum":"01/03/2025"}}`,
			[]string{"01/02/2025", "28/02/2025"}, []string{"31/01/2025", "01/03/2025"}},
		{"datetime bounds across fractions and zones", `{"name":"x","type":"datetime","constraints":{"minimum":"2025-01-01T00:00:00Z","maximum":"2025-01-01T00:00:00.5Z"}}`,
			[]string{"2025-01-01T00:00:00Z", "2025-01-01T00:00:00.25Z", "2025-01-01T07:00:00+07:00", "2025-01-01T00:00:00.50"},
			[]string{"2024-12-31T23:59:59.999Z", "2025-01-01T00:00:00.51Z", "2025-01-01T00:00:01Z", "2025-01-01T00:00:00+07:00"}},
		{"year bounds", `{"name":"x","type":"year","constraints":{"minimum":1990,"maximum":"2020"}}`, []string{"1990", "2020"}, []string{"1989", "2021"}},
		{"yearmonth bounds", `{"name":"x","type":"yearmonth","constraints":{"minimum":"2020-06"}}`, []string{"2020-06"}, []string{"2020-05"}},
		{"time bounds", `{"name":"x","type":"time","constraints":{"maximum":"12:00:00"}}`, []string{"12:00:00", "11:59:59.9"}, []string{"12:00:00.1"}},
		{"pattern is anchored", `{"name":"x","type":"string","constraints":{"pattern":"\\S+"}}`, []string{"a", "abc"}, []string{"a ", " a", "a b", ""}},
		{"pattern of alternatives", `{"name":"x","type":"string","constraints":{"pattern":"a|bc"}}`, []string{"a", "bc"}, []string{"abc", "ac", "b"}},
		{"pattern at line ends", `{"name":"x","type":"string","constraints":{"pattern":"(?m)^a$"}}`, []string{"a"}, []string{"a\nb", "b\na", "a\n"}},
		{"pattern and a large cell", `{"name":"x","type":"string","constraints":{"pattern":"a*"}}`, []string{strings.Repeat("a", 8192)}, []string{strings.Repeat("a", 8193)}},
		{"enum", `{"name":"x","type":"string","constraints":{"enum":["baru","lunas"]}}`, []string{"baru", "lunas"}, []string{"Baru", "lunas "}},
		{"enum of numbers", `{"name":"x","type":"number","constraints":{"enum":[1.50,2]}}`, []string{"1.5", "1.500", "2", "+2.0"}, []string{"1", "1.51"}},
		{"enum of dates", `{"name":"x","type":"date","format":"%d.%m.%Y","constraints":{"enum":["1.2.2025"]}}`, []string{"01.02.2025"}, []string{"02.01.2025"}},
		{"enum of booleans", `{"name":"x","type":"boolean","constraints":{"enum":[true]}}`, []string{"1", "True"}, []string{"0"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := mustCompile(t, strings.Replace(oneField(c.field), `"primaryKey":"id"`, `"primaryKey":"id","missingValues":[]`, 1))
			b := bind(t, s, "id", "x")
			var row Row
			for _, cell := range c.accept {
				if v := b.Check(cells("k", cell), &row); v != nil {
					t.Errorf("%.60q: %+v, want accepted", cell, v)
				}
			}
			for _, cell := range c.refuse {
				if v := b.Check(cells("k", cell), &row); v == nil || v.Code != fault.ConstraintViolated || v.Field != "x" {
					t.Errorf("%.60q: %+v, want CONSTRAINT_VIOLATED", cell, v)
				}
			}
		})
	}
}

func TestNullPassesEveryConstraintButRequired(t *testing.T) {
	s := mustCompile(t, oneField(`{"name":"x","type":"string","constraints":{"minLength":3,"pattern":"a+","enum":["aaa"]}}`))
	var row Row
	if v := bind(t, s, "id", "x").Check(cells("1", ""), &row); v != nil {
		t.Errorf("null: %+v, want accepted", v)
	}
}

func TestLayouts(t *testing.T) {
	cases := []struct {
		typ, format string
		accept      map[string]string // cell -> canonical
		refuse      []string
	}{
		{"date", "%d/%m/%Y", map[string]string{"05/01/2025": "2025-01-05", "5/1/2025": "2025-01-05", "31/12/1999": "1999-12-31"},
			[]string{"31/04/2025", "5/1/25", "005/01/2025", "05-01-2025", "05/01/2025 ", "/1/2025"}},
		{"date", "%Y%m%d", map[string]string{"20250105": "2025-01-05"}, []string{"2025105", "2025015", "202501055"}},
		{"date", "%m/%d/%y", map[string]string{"1/5/25": "2025-01-05", "01/05/68": "2068-01-05", "01/05/69": "1969-01-05", "01/05/99": "1999-01-05"}, []string{"1/5/2025", "13/5/25"}},
		{"date", "%d %b %Y", map[string]string{"5 Jan 2025": "2025-01-05", "05 DEC 2025": "2025-12-05"}, []string{"5 January 2025", "5 Foo 2025", "5 Mei 2025"}},
		{"date", "%B %d, %Y", map[string]string{"March 5, 2025": "2025-03-05", "may 05, 2025": "2025-05-05"}, []string{"Mar 5, 2025"}},
		{"date", "%Y-%j", map[string]string{"2024-366": "2024-12-31", "2025-060": "2025-03-01", "2025-1": "2025-01-01"}, []string{"2025-366", "2025-000", "2025-0"}},
		{"date", "%Y%%%m%%%d", map[string]string{"2025%01%05": "2025-01-05"}, []string{"2025-01-05"}},
		{"date", "%d1%m1%Y", map[string]string{"05101" + "12025": "2025-01-05"}, []string{"51112025"}},
		{"time", "%H:%M", map[string]string{"10:15": "10:15:00", "9:05": "09:05:00"}, []string{"24:00", "10:60", "10"}},
		{"time", "%I:%M %p", map[string]string{"12:00 AM": "00:00:00", "12:30 pm": "12:30:00", "1:05 PM": "13:05:00", "11:59 AM": "11:59:00"}, []string{"13:00 PM", "0:10 AM", "1:00 XM", "1:00"}},
		{"time", "%H%M%S", map[string]string{"101530": "10:15:30"}, []string{"10153", "101560"}},
		{"datetime", "%Y-%m-%dT%H:%M:%S", map[string]string{"2026-07-27T10:15:30": "2026-07-27T10:15:30"}, []string{"2026-07-27T10:15:30Z", "2026-07-27 10:15:30"}},
		{"datetime", "%d/%m/%Y %H:%M:%S.%f", map[string]string{"27/07/2026 10:15:30.5": "2026-07-27T10:15:30.5", "27/07/2026 10:15:30.123456789": "2026-07-27T10:15:30.123456789", "27/07/2026 10:15:30.000000": "2026-07-27T10:15:30"},
			[]string{"27/07/2026 10:15:30", "27/07/2026 10:15:30."}},
		{"datetime", "%Y-%m-%d %H:%M%z", map[string]string{"2026-07-27 01:15+0700": "2026-07-26T18:15:00Z", "2026-07-27 01:15+07:00": "2026-07-26T18:15:00Z", "2026-07-27 01:15Z": "2026-07-27T01:15:00Z", "2026-07-27 01:15-0330": "2026-07-27T04:45:00Z"},
			[]string{"2026-07-27 01:15", "2026-07-27 01:15+07", "2026-07-27 01:15+1500"}},
		{"datetime", "%Y-%m-%d", map[string]string{"2026-07-27": "2026-07-27T00:00:00"}, []string{"2026-07-27T00:00:00"}},
	}
	for _, c := range cases {
		l, err := newLayout(c.format, c.typ)
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		for cell, want := range c.accept {
			m, ok := l.read([]byte(cell))
			if got := string(m.append(nil, c.typ)); !ok || got != want {
				t.Errorf("%s of %q = %q, %v; want %q", c.format, cell, got, ok, want)
				continue
			}
			written := l.append(nil, &m)
			if again, ok := l.read(written); !ok || again != m {
				t.Errorf("%s writes %q as %q, which reads as %+v, %v", c.format, cell, written, again, ok)
			}
		}
		for _, cell := range c.refuse {
			if m, ok := l.read([]byte(cell)); ok {
				t.Errorf("%s takes %q as %+v", c.format, cell, m)
			}
		}
	}
}

func TestLayoutsRefused(t *testing.T) {
	cases := []struct{ typ, format, says string }{
		{"date", "%d/%m", "does not give year"}, {"date", "yyyy-mm-dd", "does not give year"}, {"date", "", "does not give year"},
		{"date", "%Y-%m-%d %H", "no time of day"}, {"time", "%Y %H", "no date"}, {"time", "%M:%S", "hour"},
		{"datetime", "%H:%M", "does not give year"}, {"date", "%Y-%y-%m-%d", "twice"}, {"date", "%Y-%m-%b-%d", "twice"}, {"date", "%Y-%j-%d", "twice"},
		{"date", "%U", "%U is not supported; supported: %Y"}, {"date", "%Y-%m-%d%", "single %"}, {"date", "%é", "%é is not"},
		{"time", "%I:%M", "%p"}, {"time", "%H:%M %p", "mixes"}, {"time", "%H %f%M", "%f"},
	}
	for _, c := range cases {
		if _, err := newLayout(c.format, c.typ); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %v, want an error that says %q", c.typ, c.format, err, c.says)
		}
	}
}

// What is exported must come back as the same value.
func TestAppendCell(t *testing.T) {
	s := mustCompile(t, `{"schema":{"fields":[{"name":"id","type":"string"},
		{"name":"n","type":"number","decimalChar":",","groupChar":"."},
		{"name":"b","type":"boolean","trueValues":["-","ya"],"falseValues":["tidak"]},
		{"name":"d","type":"date","format":"%d %b %Y"},
		{"name":"t","type":"datetime","format":"%d/%m/%Y %I:%M %p %z"}],"primaryKey":"id","missingValues":["-",""]}}`)
	b := bind(t, s, "id", "n", "b", "d", "t")
	cases := []struct{ row, want []string }{
		{[]string{"A 1", "1.234,50", "ya", "5 jan 2025", "5/1/2025 1:05 PM +0700"}, []string{"A 1", "1234,5", "ya", "05 Jan 2025", "05/01/2025 06:05 AM +0000"}},
		{[]string{"A", "", "tidak", "-", ""}, []string{"A", "-", "tidak", "-", "-"}},
	}
	for _, c := range cases {
		var row, again Row
		if v := b.Check(cells(c.row...), &row); v != nil {
			t.Fatal(v)
		}
		for i, want := range c.want {
			if got := string(s.AppendCell(nil, i, row.Values[i])); got != want {
				t.Errorf("cell %d = %q, want %q", i, got, want)
			}
		}
		if v := b.Check(cells(c.want...), &again); v != nil || again.Hash != row.Hash {
			t.Errorf("%q does not come back: %v", c.want, v)
		}
	}
}
