package importtest

import (
	"bytes"
	"fmt"
	"testing"

	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

// everyReject has every kind of row that can be rejected without a record being there. Rows of broken quotes
// stand where one could swallow the next.
const everyReject = "k,v\n" +
	"a,1\n" +
	"b,x\n" + // not a number
	"\"l,10\n" + // quote that is never closed
	"c,-1\n" + // below the minimum
	",4\n" + // no key
	"d\n" + // a cell too few
	"e,6,7,8\n" + // and too many
	"\"f\" g,9\n" + // text after a quote
	"h,\xff\xfe\n" + // not UTF-8
	"i,1\x00\n" +
	"\"j, k\",\"x\"\"y\"\n" + // quoted
	"\"m\nn\",-2\n" + // over two lines
	"o,\"12" // quote that is never closed, at the end of the file

// TestRejectedImportsAgain imports rejected.csv as it is, and the rejected.csv of that, and so on: each time
// the same rows are rejected for the same reasons.
func TestRejectedImportsAgain(t *testing.T) {
	w := newWorld(t)
	jobID := w.submit(everyReject)
	w.drain(jobID)
	want, raw := w.reasons(jobID), w.quarantined(jobID)
	if len(want) != 12 {
		t.Fatalf("%d rows are rejected: %q", len(want), want)
	}
	for range 3 {
		body := w.artifact(jobID, "rejected.csv")
		jobID = w.submit(body)
		j := w.drain(jobID)
		same(t, "rows", want, w.reasons(jobID))
		for i, r := range w.quarantined(jobID) {
			if !bytes.HasSuffix(bytes.TrimRight(r.Raw, "\n"), bytes.TrimRight(raw[i].Raw, "\n")) {
				t.Errorf("%q became %q", raw[i].Raw, r.Raw)
			}
		}
		same(t, "warnings", nil, j.Warnings)
		if j.Error == nil || j.Error.Code != "ALL_ROWS_REJECTED" || *j.Result.RowsTotal != int64(len(want)) {
			t.Errorf("%s %+v", j.Status, j.Error)
		}
		if t.Failed() {
			t.Fatalf("of\n%s", body)
		}
	}
	w.audit(t)
}

// A repaired rejected.csv brings in exactly what was missing.
func TestRepairedRejectedFile(t *testing.T) {
	w := newWorld(t)
	jobID := w.submit(file("a,1", "b,x", "c,3", `"d,4`, "a,5"))
	w.drain(jobID)
	same(t, "rejected.csv", `"_row_number",_code,_field,_class,_message,k,v
"2",TYPE_MISMATCH,v,data,"`+w.message(jobID, 2)+`",b,x
"4",MALFORMED_ROW,,data,`+w.message(jobID, 4)+`,"d,4
"5",DUPLICATE_KEY_IN_FILE,k,data,an earlier row of this file has the same key; only the first one is applied,a,5
`, w.artifact(jobID, "rejected.csv"))
	repaired := w.drain(w.submit(`"_row_number",_code,_field,_class,_message,k,v
"2",TYPE_MISMATCH,v,data,,b,2
"4",MALFORMED_ROW,,data,,d,4
`))
	same(t, "counters", job.Counters{Created: 2}, repaired.Result.Counters)
	same(t, "records", map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}, w.values())
	w.audit(t)
}

// reasons tells why rows were rejected, in row order.
func (w *world) reasons(jobID id.Job) (out []string) {
	w.t.Helper()
	for _, r := range w.quarantined(jobID) {
		out = append(out, fmt.Sprintf("%s %s %s", r.Code, r.Class, r.Field))
	}
	return out
}

func (w *world) message(jobID id.Job, n int64) string {
	w.t.Helper()
	for _, r := range w.quarantined(jobID) {
		if r.RowNumber == n {
			return r.Message
		}
	}
	w.t.Fatalf("row %d is not in quarantine", n)
	return ""
}

func (w *world) quarantined(jobID id.Job) []quarantine.Row {
	w.t.Helper()
	page, err := w.store.ListRows(w.t.Context(), w.caller.Tenant, jobID, quarantine.Filter{}, "", 1000, 4<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Rows
}
