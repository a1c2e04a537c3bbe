package rowio

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func jsonLines(max int) Layout {
	return Layout{Format: FormatJSONL, RecordEnd: RecordEndLF, MaxRecordBytes: max, DataStart: Position{Line: 1, Row: 1}}
}

// linesReference reads JSON Lines the plain way: the whole file at once.
func linesReference(data []byte, l Layout) (rows []refRow) {
	at := l.DataStart
	for _, raw := range bytes.SplitAfter(data[at.Offset:], []byte("\n")) {
		row := refRow{Raw: string(raw), Row: at.Row, Line: at.Line, Offset: at.Offset}
		at.Offset += int64(len(raw))
		at.Line++
		content := strings.TrimRight(strings.TrimSuffix(row.Raw, "\n"), "\r")
		switch {
		case len(raw) > l.MaxRecordBytes:
			row.Raw, row.Code = row.Raw[:l.MaxRecordBytes], CodeMalformedRow
		case strings.Trim(row.Raw, " \t\r\n") == "":
			continue
		case strings.Contains(content, "\x00"):
			row.Code = CodeMalformedRow
		case !utf8.ValidString(content):
			row.Code = CodeInvalidEncoding
		default:
			row.Fields = []string{content}
		}
		rows = append(rows, row)
		at.Row++
	}
	return rows
}

func checkLines(t failer, data []byte, l Layout, target int64, wrap slow, window int) {
	t.Helper()
	got, _, end := readRows(t, wrap(bytes.NewReader(data[l.DataStart.Offset:])), l, l.DataStart, window)
	if d := cmp.Diff(linesReference(data, l), got); d != "" {
		t.Fatalf("rows of %q (want -, got +):\n%s", data, d)
	}
	if end.Offset != int64(len(data)) {
		t.Fatalf("%q ends at %+v", data, end)
	}
	checkChunks(t, data, l, target, wrap, window)
}

var targets = []int64{16, 64, 1 << 10, 1 << 40}

// nastyLines are ends of lines, and what is none, in every place.
var nastyLines = []string{
	"", "\n", "\r\n\r\n", "{}", "{}\n{}", "{\"a\":\"x\u2028y\u2029z\u0085\f\v\"}\r{}\n", " \t\r\n{\"a\":1}\n \n", "\"open\n\"close\n",
	"{\"a\":1}\r\r\n{\"b\":2}\r", "\xff\n{}\n", "{\"a\":\"\x00\"}\n{}\n", strings.Repeat("x", 63) + "\n" + strings.Repeat(" ", 200) + "\n{}\n", "\ufeff{}\n\ufeff{}\n",
}

func TestLines(t *testing.T) {
	for _, text := range nastyLines {
		for _, target := range targets {
			for _, max := range []int{1, 64, 1 << 20} {
				checkLines(t, []byte(text), jsonLines(max), target, asIs, 0)
				checkLines(t, []byte(text), jsonLines(max), target, iotest.OneByteReader, 1)
			}
		}
	}
}

func TestLineCases(t *testing.T) {
	columns := []string{"catatan", "diskon", "harga", "order_id", "qty", "tanggal"}
	cases := []struct {
		name   string
		lines  []int64 // of the rows
		starts []string
		end    RecordEnd
	}{
		{"89-jsonl-bom-crlf-blank.jsonl", []int64{1, 3}, []string{`{"order_id":"A1"`, `{"order_id":"A2"`}, RecordEndCRLF},
		{"91-jsonl-bad-line.jsonl", []int64{1, 2, 3}, []string{`{"order_id":"A1"`, `{"order_id":"A2","qty":`, `{"order_id":"A3"`}, RecordEndLF},
		{"92-jsonl-not-objects.jsonl", []int64{1, 2, 3, 4, 5}, []string{`{"order_id":"A1"`, `"teks"`, `123`, `null`, `[1]`}, RecordEndLF},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := readCase(t, c.name)
			l, err := InspectLines(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if l.RecordEnd != c.end || !slices.Equal(l.Header, columns) {
				t.Errorf("layout %+v", l)
			}
			rows, _, _ := readRows(t, bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart, 0)
			if len(rows) != len(c.lines) {
				t.Fatalf("%d rows, want %d", len(rows), len(c.lines))
			}
			for i, row := range rows {
				if row.Line != c.lines[i] || row.Row != int64(i)+1 || row.Code != "" || !strings.HasPrefix(row.Fields[0], c.starts[i]) {
					t.Errorf("row %+v, want line %d, %s", row, c.lines[i], c.starts[i])
				}
			}
			for _, target := range targets {
				checkLines(t, data, l, target, asIs, 0)
			}
		})
	}
}

func TestLinesRefused(t *testing.T) {
	cases := []struct{ name, data, code, message string }{
		{"array", string(readCase(t, "90-jsonl-is-array.jsonl")), CodeMalformedJSONL, "JSON array, expected one object per line"},
		{"array behind BOM and blanks", "\ufeff \r\n\t[", CodeMalformedJSONL, "JSON array, expected one object per line"},
		{"nothing", "", CodeEmptyFile, "the file is empty: it has no rows"},
		{"blank lines", "\ufeff\n \r\n", CodeEmptyFile, "the file is empty: it has no rows"},
		{"gzip", string(readCase(t, "55-gzip-named-csv.csv")), CodeFileNotText, "this is gzip data, not JSON Lines in UTF-8; save or convert it as JSON Lines in UTF-8 and upload that"},
		{"UTF-16", "{\x00}\x00\n\x00", CodeFileNotText, "this is UTF-16LE text or binary data, not JSON Lines in UTF-8; save or convert it as JSON Lines in UTF-8 and upload that"},
	}
	for _, c := range cases {
		_, err := InspectLines(strings.NewReader(c.data))
		var p *Problem
		if !errors.As(err, &p) || p.Code != c.code || p.Message != c.message {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestNamesOfLines: a head that ends within a line, and lines that are no objects, name nothing; a file of
// names without end gives a layout that can be stored.
func TestNamesOfLines(t *testing.T) {
	l, err := InspectLines(strings.NewReader("1\n{\"b\":1}\n{broken\n{\"a\":{\"inner\":1},\"b\":2}\n{\"c\":" + strings.Repeat(" ", headBytes)))
	if err != nil || !slices.Equal(l.Header, []string{"a", "b"}) {
		t.Errorf("names %q (%v)", l.Header, err)
	}
	var many strings.Builder
	for i := range 2 * maxNames {
		many.WriteString(`{"` + strings.Repeat("n", i%90+1) + `":1,"` + strings.Repeat("m", 2*i) + "\":2}\n")
	}
	if l, err = InspectLines(strings.NewReader(many.String())); err != nil || len(l.Header) == 0 || len(strings.Join(l.Header, "")) > maxNameBytes {
		t.Errorf("%d names (%v)", len(l.Header), err)
	}
}

// TestRejectedLinesReadAgain: in rejected.jsonl a row is JSON exactly when it was, an object exactly when it was,
// and ends in the bytes it had.
func TestRejectedLinesReadAgain(t *testing.T) {
	lines := []string{`{"a":1}`, `{}`, `{ }`, `{ "a" : 1 }`, `{"a":`, `{`, `{}}`, `{,}`, `"a":1}`, `,"a":1}`, `}`, `teks`, `"teks"`, `123`, `null`, `[1]`, `[{}]`,
		"{\"a\":\"\xff\"}", "\ufeff{}", " \t{\"a\":2}", "\r{\"a\":2}\r", "{\"a\":\"\x00\"}", `{"_row_number":1,"a":1}`}
	l := jsonLines(1 << 20)
	data := []byte(strings.Join(lines, "\n"))
	rows, _, _ := readRows(t, bytes.NewReader(data), l, l.DataStart, 0)
	file := rejectAll(t, l, rows)
	again, _, _ := readRows(t, bytes.NewReader(file), l, l.DataStart, 0)
	if len(again) != len(lines) {
		t.Fatalf("%d rows of %d:\n%s", len(again), len(lines), file)
	}
	object := func(raw string) bool {
		return json.Valid([]byte(raw)) && strings.HasPrefix(strings.TrimSpace(raw), "{")
	}
	for i, was := range rows {
		now := again[i]
		body := strings.TrimLeft(strings.TrimRight(was.Raw, "\n"), " \t\r{")
		if now.Code != was.Code || object(now.Raw) != object(was.Raw) || !strings.HasSuffix(strings.TrimRight(now.Raw, "\n"), body) {
			t.Errorf("%q became %q (%s, was %s)", was.Raw, now.Raw, now.Code, was.Code)
		}
		var members struct {
			Row   int64  `json:"_row_number"`
			Field string `json:"_field"`
			Text  string `json:"_message"`
		}
		dec := json.NewDecoder(strings.NewReader(now.Raw))
		if err := dec.Decode(&members); err == nil && i != len(rows)-1 && (members.Row != was.Row || members.Field != "a b" || members.Text != "not \"x\", but\ny") {
			t.Errorf("%q has %+v", now.Raw, members)
		}
	}
}

// FuzzJSONLines: any bytes, any chunk size, any limit give the lines of the plain reference.
func FuzzJSONLines(f *testing.F) {
	for _, text := range nastyLines {
		f.Add([]byte(text), uint8(16), uint16(64), uint8(3))
	}
	files, err := filepath.Glob("testdata/cases/*.jsonl")
	if err != nil || len(files) != 4 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(64), uint16(1024), uint8(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, target uint8, max uint16, window uint8) {
		if len(data) > 1<<12 {
			return
		}
		l := jsonLines(int(max) + 1)
		checkLines(t, data, l, int64(target), asIs, int(window))
		if found, err := InspectLines(bytes.NewReader(data)); err == nil {
			found.MaxRecordBytes = l.MaxRecordBytes // a buffer of the usual size takes longer than the rest
			checkLines(t, data, found, int64(target), asIs, int(window))
		}
	})
}
