package importtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

const orders = `{"schema":{"fields":[
	{"name":"order_id","type":"string","constraints":{"required":true%s}},{"name":"tanggal","type":"date"},
	{"name":"qty","type":"integer","constraints":{"minimum":1}},{"name":"harga","type":"number"},{"name":"diskon","type":"number"},
	{"name":"catatan","type":"string"}],"primaryKey":["order_id"],"missingValues":[""]},"dialect":{"delimiter":","}}`

// csvCase is one file as real systems write them, and what an import of it must come to.
type csvCase struct {
	file     string
	accepted int64
	rejected map[int64]fault.Code
	refused  fault.Code        // of the whole file
	values   map[string]string // "key field" to stored text; null is "null"
	warns    []fault.Code
	schema   string // "" is orders
	says     string // part of a message of the error, or of the first rejected row
	rawBytes int    // of the first rejected row, its record end included
}

type rows = map[int64]fault.Code

func bad(code fault.Code, numbers ...int64) rows {
	m := rows{}
	for _, n := range numbers {
		m[n] = code
	}
	return m
}

type texts = map[string]string

var cases = []csvCase{
	{file: "01-bom-utf8.csv", accepted: 2, values: texts{"A1 catatan": "ok", "A2 order_id": "A2", "A1 diskon": "null", "A1 tanggal": "2025-01-05"}},
	{file: "02-bom-quoted-header.csv", accepted: 1, values: texts{"A1 order_id": "A1", "A1 harga": "1500"}},
	{file: "06-cp1252.csv", accepted: 1, rejected: bad(fault.InvalidEncoding, 1), values: texts{"A2 catatan": "biasa"}, says: "windows-1252"},
	{file: "07-one-bad-utf8-row.csv", accepted: 2, rejected: bad(fault.InvalidEncoding, 2)},
	{file: "08-nul-byte.csv", accepted: 1, rejected: bad(fault.MalformedRow, 1), values: texts{"A2 catatan": "ok"}},
	{file: "09-control-0x1f.csv", accepted: 1, values: texts{"A1 catatan": "Eam integre\x1f/4000"}},
	{file: "10-fortran-looking-line.csv", accepted: 1, values: texts{"C S Moorland garages order_id": "C S Moorland garages"}},
	{file: "12-cr-only.csv", accepted: 2, values: texts{"A1 catatan": "ok", "A2 catatan": "ok"}},
	{file: "14-cr-cr-lf.csv", accepted: 2, values: texts{"A1 catatan": "ok", "A2 catatan": "ok"}},
	{file: "16-last-quoted-no-newline.csv", accepted: 2, values: texts{"A2 catatan": "akhir"}},
	{file: "17-bare-cr-unquoted.csv", accepted: 1, rejected: bad(fault.MalformedRow, 1)},
	{file: "19-u2028-nel-ff.csv", accepted: 3, values: texts{"A1 catatan": "a\u2028b", "A2 catatan": "a\u0085b", "A3 catatan": "a\fb\vc"}},
	{file: "20-blank-lines.csv", accepted: 2},
	{file: "22-quoted-newlines.csv", accepted: 3, values: texts{"A1 catatan": "<p>\nsatu, dua\n</p>", "A2 catatan": "ok"}},
	{file: "24-lone-quote-unquoted.csv", accepted: 3, values: texts{"A1 catatan": `kabel 24" hitam`, "A3 catatan": "ok"}},
	{file: "26-text-after-closing-quote.csv", accepted: 1, rejected: bad(fault.MalformedRow, 1)},
	{file: "30-unterminated-quote-eof.csv", accepted: 1, rejected: bad(fault.MalformedRow, 2)},
	{file: "31-backslash-escaped-quotes.csv", accepted: 1, rejected: bad(fault.MalformedRow, 1)},
	{file: "33-copy-end-marker.csv", accepted: 3, values: texts{"A1 catatan": `\.`, "A3 catatan": `\.`}},
	{file: "34-empty-vs-quoted-empty.csv", accepted: 2, values: texts{"A1 diskon": "null", "A1 catatan": "null", "A2 diskon": "null", "A2 catatan": "x"}},
	{file: "35-space-before-quote.csv", accepted: 1, rejected: bad(fault.WrongColumnCount, 1)},
	{file: "37-semicolon-file.csv", refused: fault.HeaderInvalid, says: `;`},
	{file: "39-multiline-cell-before-guess.csv", accepted: 1},
	{file: "40-trailing-delimiter-rows.csv", accepted: 3, values: texts{"A1 catatan": "ok", "A3 order_id": "A3"}, warns: []fault.Code{fault.TrailingDelimiter}},
	{file: "41-trailing-delimiter-header.csv", accepted: 2, values: texts{"A1 catatan": "ok"}},
	{file: "42-short-row.csv", accepted: 1, rejected: bad(fault.WrongColumnCount, 1)},
	{file: "43-long-row.csv", accepted: 1, rejected: bad(fault.WrongColumnCount, 1)},
	{file: "44-hash-first-column.csv", accepted: 2, values: texts{"#1001 catatan": "ok"}},
	{file: "45-single-column.csv", accepted: 2, schema: `{"schema":{"fields":[{"name":"order_id","type":"string"}],"primaryKey":["order_id"]}}`},
	{file: "46-header-duplicate.csv", refused: fault.DuplicateColumns, says: "7"},
	{file: "48-header-spaces.csv", accepted: 1, values: texts{"A1 qty": "2"}, warns: []fault.Code{fault.HeaderTrimmed}},
	{file: "49-header-nbsp.csv", accepted: 1, values: texts{"A1 tanggal": "2025-01-05"}, warns: []fault.Code{fault.HeaderTrimmed}},
	{file: "50-header-missing-key.csv", refused: fault.MissingColumns, says: "order_id"},
	{file: "52-header-only-delimiters.csv", refused: fault.HeaderInvalid},
	{file: "53-zero-byte.csv", refused: fault.EmptyFile},
	{file: "54-header-only.csv"},
	{file: "56-xlsx-named-csv.csv", refused: fault.FileNotText},
	{file: "57-leading-zeros.csv", accepted: 2, values: texts{"0010 catatan": "00042", "0100 catatan": "007"}},
	{file: "59-code-with-e.csv", accepted: 2, values: texts{"219E01 order_id": "219E01", "1E5 order_id": "1E5"}},
	{file: "60-exponent-in-integer.csv", accepted: 1, rejected: bad(fault.TypeMismatch, 1, 3), values: texts{"A2 harga": "1500"}},
	{file: "61-beyond-float53.csv", accepted: 4, values: texts{"A1 qty": "1234567890123456789", "A2 qty": "9223372036854775807",
		"A3 qty": "9223372036854775808", "A4 qty": "11898508762506083287"}},
	{file: "63-decimal-exactness.csv", accepted: 4, values: texts{"A1 harga": "26.34", "A2 harga": "0.1", "A3 harga": "33.10318374633789", "A4 harga": "1234567890.123456789"}},
	{file: "65-decimal-comma.csv", accepted: 1, rejected: bad(fault.TypeMismatch, 1)},
	{file: "69-date-excel-serial.csv", accepted: 1, rejected: bad(fault.TypeMismatch, 1)},
	{file: "70-date-two-digit-year.csv", accepted: 1, rejected: bad(fault.TypeMismatch, 1, 2, 3)},
	{file: "71-na-strings.csv", accepted: 3, rejected: bad(fault.TypeMismatch, 4), values: texts{"A1 catatan": "NA", "A2 catatan": "NULL", "A3 catatan": "None"}},
	{file: "72-booleans.csv", accepted: 6, rejected: bad(fault.TypeMismatch, 7, 8, 9, 10), values: texts{"B1 lunas": "true", "B3 lunas": "true", "B4 lunas": "true", "B5 lunas": "false", "B6 lunas": "false"},
		schema: `{"schema":{"fields":[{"name":"order_id","type":"string"},{"name":"lunas","type":"boolean"}],"primaryKey":["order_id"]}}`},
	{file: "74-leading-apostrophe.csv", accepted: 1, rejected: bad(fault.TypeMismatch, 1), values: texts{"A2 catatan": "'0123"}},
	{file: "75-value-spaces.csv", accepted: 2, values: texts{"A1 catatan": "  Bond  ", "A2 catatan": "x\u00a0"}},
	{file: "77-duplicate-rows-equal.csv", accepted: 2, rejected: bad(fault.DuplicateKey, 2)},
	{file: "78-key-trailing-space.csv", accepted: 2, rejected: bad(fault.ConstraintViolated, 2), schema: fmt.Sprintf(orders, `,"pattern":"\\S+"`)},
	{file: "80-empty-key.csv", accepted: 1, rejected: bad(fault.MissingValue, 1, 2)},
	{file: "81-exactly-25-rows.csv", accepted: 25},
	{file: "83-long-bad-row.csv", accepted: 1, rejected: bad(fault.TypeMismatch, 1), rawBytes: 12_627},
	{file: "89-jsonl-bom-crlf-blank.jsonl", accepted: 2, values: texts{"A1 qty": "2", "A2 harga": "1500", "A2 diskon": "null"}},
	{file: "90-jsonl-is-array.jsonl", refused: fault.MalformedJSONL, says: "JSON array, expected one object per line"},
	{file: "91-jsonl-bad-line.jsonl", accepted: 2, rejected: bad(fault.MalformedRow, 2), values: texts{"A3 catatan": "ok"}},
	{file: "92-jsonl-not-objects.jsonl", accepted: 1, rejected: bad(fault.MalformedRow, 2, 3, 4, 5)},
}

// chunkSizes are the splits that must make no difference.
var chunkSizes = []int64{16, 64, 1 << 10, 8 << 20, 1 << 40}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join("../../internal/rowio/testdata/cases", c.file))
			if err != nil {
				t.Fatal(err)
			}
			var first *outcome
			for _, size := range chunkSizes {
				synctest.Test(t, func(t *testing.T) {
					got := c.run(t, body, size)
					if first == nil {
						first = got
						c.check(t, body, got)
					}
					if diff := cmp.Diff(first, got); diff != "" {
						t.Errorf("chunks of %d bytes make a difference (-%d +got):\n%s", size, chunkSizes[0], diff)
					}
				})
			}
		})
	}
}

// outcome is everything that an import leaves for people, but for what names the split.
type outcome struct {
	Status   job.Status
	Error    *job.Failure
	Warnings []job.Warning
	Counters job.Counters
	Total    *int64
	Samples  []job.SampleError
	Values   texts
	Versions map[string]int64
	Sources  map[string]int64
	Rows     []quarantine.Row
	Report   string
}

func (c csvCase) run(t *testing.T, body []byte, chunkBytes int64) *outcome {
	w := newWorld(t)
	schema := c.schema
	if schema == "" {
		schema = fmt.Sprintf(orders, "")
	}
	w.define("orders", schema)
	w.chunkBytes = chunkBytes
	jobID := w.upload("orders", body, func(s *job.ImportSpec) {
		if filepath.Ext(c.file) == ".jsonl" {
			s.Format = "jsonl"
		}
	})
	if _, err := w.jobs.Complete(t.Context(), w.caller, idempotency.Intent{}, jobID); err != nil {
		t.Fatal(err)
	}
	j := w.drain(jobID)
	w.audit(t)
	o := &outcome{Status: j.Status, Error: j.Error, Warnings: j.Warnings, Values: texts{}, Versions: map[string]int64{}, Sources: map[string]int64{},
		Report: w.report(jobID), Counters: j.Result.Counters, Total: j.Result.RowsTotal, Samples: j.Result.SampleErrors, Rows: w.rejected(jobID)}
	page, err := w.store.ListRecords(t.Context(), w.caller.Tenant, "orders", "", 1000, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		o.Versions[r.Key], o.Sources[r.Key] = r.Version, r.Source.RowNumber
		for _, v := range r.Values {
			text, err := v.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(text, []byte{'"'}) {
				text = []byte(v.Text)
			}
			o.Values[r.Key+" "+v.Field] = string(text)
		}
	}
	return o
}

// rejected lists a job's quarantined rows without what names the split or the moment.
func (w *world) rejected(jobID id.Job) []quarantine.Row {
	w.t.Helper()
	page, err := w.store.ListRows(w.t.Context(), w.caller.Tenant, jobID, quarantine.Filter{}, "", 1000, 4<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range page.Rows {
		page.Rows[i].Chunk = 0
		page.Rows[i].CreatedAt = page.Rows[0].CreatedAt
	}
	return page.Rows
}

func (w *world) report(jobID id.Job) string {
	for _, a := range w.job(jobID).Result.Artifacts {
		if strings.HasPrefix(a.Name, "rejected.") {
			body, _ := w.files.get(a.Key)
			return string(body)
		}
	}
	return ""
}

// check compares an outcome with the case's words. The raw payload of a rejected row is the file's bytes.
func (c csvCase) check(t *testing.T, body []byte, got *outcome) {
	codes, report := rows{}, got.Report
	for _, r := range got.Rows {
		codes[r.RowNumber] = r.Code
		if r.Class != quarantine.Data || !bytes.HasPrefix(body[r.Offset:], r.Raw) || !strings.Contains(report, strings.TrimLeft(strings.TrimRight(string(r.Raw), "\r\n"), "{")) {
			t.Errorf("row %d: class %s, raw %q at %d", r.RowNumber, r.Class, r.Raw, r.Offset)
		}
		if line := int64(bytes.Count(body[:r.Offset], []byte("\n")) + 1); r.Line != line && bytes.Contains(body, []byte("\n")) {
			t.Errorf("row %d is on line %d, want %d", r.RowNumber, r.Line, line)
		}
	}
	if diff := cmp.Diff(c.rejected, codes); diff != "" && len(c.rejected)+len(codes) > 0 {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	if got.Counters.Accepted() != c.accepted || int64(len(got.Versions)) != c.accepted {
		t.Errorf("accepted %d rows into %d records, want %d", got.Counters.Accepted(), len(got.Versions), c.accepted)
	}
	if c.rawBytes > 0 && len(got.Rows[0].Raw) != c.rawBytes {
		t.Errorf("raw payload has %d bytes, want %d", len(got.Rows[0].Raw), c.rawBytes)
	}
	for name, want := range c.values {
		if value, ok := got.Values[name]; value != want || !ok {
			t.Errorf("%s = %q, want %q", name, value, want)
		}
	}
	for _, code := range c.warns {
		if !slices.ContainsFunc(got.Warnings, func(w job.Warning) bool { return w.Code == code }) {
			t.Errorf("no warning %s in %+v", code, got.Warnings)
		}
	}
	c.checkVerdict(t, got)
}

func (c csvCase) checkVerdict(t *testing.T, got *outcome) {
	want, said := job.Succeeded, ""
	switch {
	case c.refused != "":
		want = job.Failed
		if got.Error == nil || got.Error.Code != c.refused {
			t.Fatalf("refused with %+v, want %s", got.Error, c.refused)
		}
		said = got.Error.Message + fmt.Sprint(got.Error.Details)
	case len(c.rejected) > 0:
		want, said = job.Partial, got.Rows[0].Message
	}
	if got.Status != want || !strings.Contains(said, c.says) {
		t.Errorf("ended %s saying %q, want %s and %q", got.Status, said, want, c.says)
	}
}
