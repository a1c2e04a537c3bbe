package importtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"pintu/internal/id"
	"pintu/internal/importer"
	"pintu/internal/job"
	"pintu/localstack/storetest"
)

// verified gives what holding a job's ledger against input and records comes to.
func (w *world) verified(jobID id.Job) importer.Verification {
	w.t.Helper()
	v, err := w.worker(nil).Verify(w.t.Context(), w.store, w.caller.Tenant, jobID)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// verify holds the ledger of a job that began against input and records.
func (w *world) verify(t *testing.T, jobID id.Job) {
	t.Helper()
	if j := w.job(jobID); j.Result == nil || !j.Plan.Pinned {
		return
	}
	for _, p := range w.verified(jobID).Problems {
		t.Errorf("verify: %s", p)
	}
}

func TestVerifyFindsEveryRow(t *testing.T) {
	for _, r := range everyRule {
		w := newWorld(t)
		w.grown()
		jobID := w.submitBy(r, awkward)
		c := w.drain(jobID).Result.Counters
		want := importer.Verification{JobID: jobID, Bytes: int64(len(awkward)), Chunks: len(w.chunks(jobID)), Rows: int64(len(rowsOf(awkward))),
			Accepted: c.Accepted(), Rejected: c.Rejected, Skipped: c.Skipped}
		if diff := cmp.Diff(want, w.verified(jobID)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r, diff)
		}
	}
}

// TestVerifyBehindLaterImports: what others wrote since proves nothing against a job.
func TestVerifyBehindLaterImports(t *testing.T) {
	w := newWorld(t)
	first := w.submit(file("a,1", "b,2", "c,x"))
	w.drain(first)
	w.drain(w.submit(file("a,2", "b,2")))
	v := w.verified(first)
	if v.Overtaken != 2 || v.Rejected != 1 || len(v.Problems) > 0 {
		t.Errorf("got %+v", v)
	}
}

func keyOf(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk}}
}

// add adds one to a number at a path of an item of the control table.
func (w *world) add(pk, sk, path string) {
	w.t.Helper()
	names := map[string]string{}
	var parts []string
	for i, part := range strings.Split(path, ".") {
		name := fmt.Sprint("#p", i)
		names[name], parts = part, append(parts, name)
	}
	at := strings.Join(parts, ".")
	_, err := w.db.UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String(storetest.ControlTable), Key: keyOf(pk, sk),
		UpdateExpression: aws.String("SET " + at + " = " + at + " + :one"), ExpressionAttributeNames: names,
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// damage changes the first record there is.
func (w *world) damage(expression string) {
	w.t.Helper()
	page, err := w.db.Scan(w.t.Context(), &dynamodb.ScanInput{TableName: aws.String(storetest.RecordsTable), Limit: aws.Int32(1)})
	if err != nil {
		w.t.Fatal(err)
	}
	it := page.Items[0]
	_, err = w.db.UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String(storetest.RecordsTable), UpdateExpression: &expression,
		Key: map[string]types.AttributeValue{"pk": it["pk"], "sk": it["sk"]}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestVerifyNoticesEverythingThatIsWrong changes one thing at a time.
func TestVerifyNoticesEverythingThatIsWrong(t *testing.T) {
	const chunk = "chunk#00000001"
	for _, c := range []struct {
		name, says string
		do         func(w *world, jobPK string, input []byte) []byte
	}{
		{"another byte in the input", "input_sha256", func(_ *world, _ string, b []byte) []byte { return bytes.Replace(b, []byte("a,1"), []byte("a,7"), 1) }},
		{"a shorter input", "input_bytes", func(_ *world, _ string, b []byte) []byte { return b[:len(b)-4] }},
		{"a longer input", "that the ledger lacks", func(_ *world, _ string, b []byte) []byte { return append(b, "e,1\n"...) }},
		{"another split", "start of chunk 1", func(_ *world, _ string, b []byte) []byte { return bytes.Replace(b, []byte("a,1"), []byte("aa,1"), 1) }},
		{"a row more in a chunk", "rows of chunk 1", func(w *world, pk string, b []byte) []byte { w.add(pk, chunk, "Rows"); return b }},
		{"a counter of a chunk", "counters of the chunks", func(w *world, pk string, b []byte) []byte { w.add(pk, chunk, "Counters.Created"); return b }},
		{"a counter of the result", "rows accounted for", func(w *world, pk string, b []byte) []byte { w.add(pk, "job", "Result.Counters.Updated"); return b }},
		{"rejected rows by code", "rejected_by_code", func(w *world, pk string, b []byte) []byte {
			w.add(pk, "job", "Result.Counters.ByCode.TYPE_MISMATCH")
			return b
		}},
		{"rows of the ledger", "chunks_sha256", func(w *world, pk string, b []byte) []byte { w.add(pk, chunk, "Counters.Skipped"); return b }},
		{"a record that lost its entry", "does not carry it", func(w *world, _ string, b []byte) []byte { w.damage("REMOVE e0"); return b }},
		{"a record that is another row's", "does not carry it", func(w *world, _ string, b []byte) []byte { w.damage("SET r0 = v"); return b }},
		{"a row that left the quarantine", "in quarantine", func(w *world, pk string, b []byte) []byte {
			_, err := w.db.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(storetest.ControlTable),
				Key: keyOf("rows"+strings.TrimPrefix(pk, "job")+"#00000001", "000000000002")})
			if err != nil {
				w.t.Fatal(err)
			}
			return b
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.chunkBytes = 4
			w.drain(w.submit(file("d,3"))) // v of d becomes 2
			jobID := w.submit(file("a,1", "b,x", "c,3", "d,4"))
			key := w.drain(jobID).Input.Key
			if v := w.verified(jobID); len(v.Problems) > 0 {
				t.Fatalf("before: %v", v.Problems)
			}
			b, _ := w.files.get(key)
			w.files.put(key, c.do(w, "job#acme#"+string(jobID), bytes.Clone(b)))
			if v := w.verified(jobID); !strings.Contains(strings.Join(v.Problems, "\n"), c.says) {
				t.Errorf("problems %q, want %q", v.Problems, c.says)
			}
		})
	}
}

// TestVerifyAJobThatWroteNothing: neither a dry run nor what did not commit may be in a record.
func TestVerifyAJobThatWroteNothing(t *testing.T) {
	for _, set := range []func(*job.ImportSpec){dryRun, allOrNothing} {
		w := newWorld(t)
		jobID := w.submitBy(everyRule[0], versioned("a,1,", "b,x,"), set)
		w.drain(jobID)
		w.verify(t, jobID)
	}
	if _, err := newWorld(t).worker(nil).Verify(t.Context(), nil, "acme", "job_none"); err == nil {
		t.Error("a job that does not exist was verified")
	}
}
