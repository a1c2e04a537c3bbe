package rowio

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// rejectAll writes every row of a file as rejected.
func rejectAll(t failer, l Layout, rows []refRow) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewRejectWriter(&b, l)
	if err := w.Header(); err != nil {
		t.Fatalf("header: %v", err)
	}
	for i, r := range rows {
		reject := Reject{Row: r.Row, Code: "TYPE_MISMATCH", Field: "a b", Class: "data", Message: `not "x", but` + "\ny", Raw: []byte(r.Raw)}
		var err error
		if i%2 == 0 {
			err = w.Write(reject)
		} else {
			err = w.WriteFrom(reject, iotest.OneByteReader(strings.NewReader(r.Raw)))
		}
		if err != nil {
			t.Fatalf("row %d: %v", r.Row, err)
		}
	}
	return b.Bytes()
}

func TestRejectedRowsReadAgain(t *testing.T) {
	for name, c := range caseFiles {
		if c.problem != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data := readCase(t, name)
			l, _ := mustInspect(t, data, comma)
			rows, _, _ := readRows(t, bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart, 0)
			checkRejects(t, l, rows, true)
		})
	}
}

func TestRejectedRowsOfAnyFileReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, l := drawFile(t), drawLayout(t)
		l.Header, l.Columns, l.MaxRecordBytes = []string{"a", "b"}, 2, 1<<10
		rows := readReference(data, l).rows
		checkRejects(t, l, rows, false)
	})
}

// checkRejects writes rows as rejected.csv and reads it: as many rows, each with
// its raw bytes at the end, its judgement and its cells unchanged.
func checkRejects(t failer, l Layout, rows []refRow, inspect bool) {
	t.Helper()
	file := rejectAll(t, l, rows)
	again := l
	again.Columns += len(RejectColumns)
	again.DataStart = Position{Line: 1, Row: 1}
	if inspect {
		var err error
		if again, _, err = Inspect(bytes.NewReader(file), comma); err != nil {
			t.Fatalf("inspect: %v", err)
		}
		if got, want := fmt.Sprint(again.Header), fmt.Sprint(append(append([]string{}, RejectColumns...), l.Header...)); got != want {
			t.Fatalf("header %s, want %s", got, want)
		}
	} else {
		again.DataStart.Offset = int64(bytes.IndexByte(file, l.recordEndBytes()[len(l.recordEndBytes())-1]) + 1)
	}
	got, _, _ := readRows(t, bytes.NewReader(file[again.DataStart.Offset:]), again, again.DataStart, 0)
	if len(got) != len(rows) {
		t.Fatalf("%d rejected rows read as %d:\n%q", len(rows), len(got), file)
	}
	for i, want := range rows {
		if !strings.HasSuffix(strings.TrimRight(got[i].Raw, "\r\n"), strings.TrimRight(want.Raw, "\r\n")) {
			t.Fatalf("row %q became %q", want.Raw, got[i].Raw)
		}
		if got[i].Code != want.Code {
			t.Fatalf("row %q: code %q, want %q", got[i].Raw, got[i].Code, want.Code)
		}
		if want.Fields == nil || want.Code == CodeWrongColumnCount {
			continue
		}
		added := []string{fmt.Sprint(want.Row), "TYPE_MISMATCH", "a b", "data", `not "x", but y`}
		if fmt.Sprintf("%q", got[i].Fields) != fmt.Sprintf("%q", append(added, want.Fields...)) {
			t.Fatalf("row %q: cells %q, want %q behind the added ones", got[i].Raw, got[i].Fields, want.Fields)
		}
	}
}

func TestRejectedFileKeepsBytesAndDialect(t *testing.T) {
	l, _ := mustInspect(t, []byte("sep=;\r\nid;name\r\n"), comma)
	var b bytes.Buffer
	w := NewRejectWriter(&b, l)
	if err := w.Header(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []Reject{
		{Row: 3, Code: "MALFORMED_ROW", Class: "data", Message: "unterminated quote", Raw: []byte("7;\"open\r\n")},
		{Row: 9, Code: "TYPE_MISMATCH", Field: "na;me", Class: "data", Message: `got "x"`, Raw: []byte("8;\xE9")},
	} {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	want := "sep=;\r\n" +
		"\"_row_number\";_code;_field;_class;_message;id;name\r\n" +
		"\"3\";MALFORMED_ROW;;data;unterminated quote;7;\"open\r\n" +
		"\"9\";TYPE_MISMATCH;\"na;me\";data;\"got \"\"x\"\"\";8;\xE9\r\n"
	if b.String() != want {
		t.Fatalf("got  %q\nwant %q", b.String(), want)
	}
}
