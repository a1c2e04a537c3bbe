package importtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/localstack/audit"
	"pintu/localstack/storetest"
)

// garden is a world in which every kind of stored thing is there, for contradictions to be planted in.
type garden struct {
	*world
	done, running, queued, waiting, uploading id.Job
}

func newGarden(t *testing.T) *garden {
	g := &garden{world: newWorld(t)}
	g.chunkBytes = 16
	g.done = g.submit(file("a,1", "b,2", "c,x", "d,4", "e,5"))
	g.drain(g.done)
	g.running = g.submit(file("a,1", "f,2", "g,3", "h,4", "i,5"))
	g.drainPlan()
	g.queue = g.queue[:1]
	time.Sleep(time.Second)
	g.queued = g.submit(file("a,3"))
	g.submit(file("a,4"))
	g.submit(file("a,5"))
	time.Sleep(time.Second)
	g.waiting = g.submit(file("a,6"))
	g.uploading = g.upload("pairs", []byte("k,v\n"), func(s *job.ImportSpec) { s.DeduplicationKey, s.ReuseWindowSeconds = "today", 60 })
	if _, err := g.jobs.UploadURL(t.Context(), g.caller, idempotency.Intent{Key: "again", Fingerprint: "f"}, g.uploading); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *garden) audited(t *testing.T, more ...string) audit.Report {
	t.Helper()
	r, err := audit.Run(t.Context(), audit.Config{DB: g.db, ControlTable: storetest.ControlTable, RecordsTable: storetest.RecordsTable, Messages: append(g.messages(), more...)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// at is an item of the control table.
type at struct{ pk, sk string }

func theJob(j id.Job) at          { return at{"job#acme#" + string(j), "job"} }
func theChunk(j id.Job, k int) at { return at{"job#acme#" + string(j), fmt.Sprintf("chunk#%08d", k)} }
func theRow(j id.Job, k, row int) at {
	return at{fmt.Sprintf("rows#acme#%s#%08d", j, k), fmt.Sprintf("%012d", row)}
}

var theSlots, theActives = at{"dataset#acme#pairs", "slots"}, at{"client#acme#loader", "active"}

func (p at) key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: p.pk}, "sk": &types.AttributeValueMemberS{Value: p.sk}}
}

// set changes one attribute, by path; nil removes it.
func (g *garden) set(table string, p at, path string, value any) {
	g.t.Helper()
	in := &dynamodb.UpdateItemInput{TableName: &table, Key: p.key(), ExpressionAttributeNames: map[string]string{}, ConditionExpression: aws.String("attribute_exists(pk)")}
	var names []string
	for i, name := range strings.Split(path, ".") {
		placeholder := fmt.Sprint("#n", i)
		in.ExpressionAttributeNames[placeholder] = name
		names = append(names, placeholder)
	}
	if value == nil {
		in.UpdateExpression = aws.String("REMOVE " + strings.Join(names, "."))
	} else {
		v, err := attributevalue.Marshal(value)
		if err != nil {
			g.t.Fatal(err)
		}
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":v": v}
		in.UpdateExpression = aws.String("SET " + strings.Join(names, ".") + " = :v")
	}
	if _, err := g.db.UpdateItem(g.t.Context(), in); err != nil {
		g.t.Fatal(err)
	}
}

func (g *garden) control(p at, path string, value any) { g.set(storetest.ControlTable, p, path, value) }

func (g *garden) remove(p at) {
	g.t.Helper()
	_, err := g.db.DeleteItem(g.t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(storetest.ControlTable), Key: p.key(), ConditionExpression: aws.String("attribute_exists(pk)")})
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *garden) put(p at, more map[string]types.AttributeValue) {
	g.t.Helper()
	it := p.key()
	for name, v := range more {
		it[name] = v
	}
	if _, err := g.db.PutItem(g.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(storetest.ControlTable), Item: it}); err != nil {
		g.t.Fatal(err)
	}
}

// record changes an attribute of a stored record.
func (g *garden) record(key, attribute string, value any) {
	g.t.Helper()
	for shard := range 32 {
		p := at{fmt.Sprintf("acme#pairs#%02d", shard), key}
		got, err := g.db.GetItem(g.t.Context(), &dynamodb.GetItemInput{TableName: aws.String(storetest.RecordsTable), Key: p.key()})
		if err != nil {
			g.t.Fatal(err)
		}
		if got.Item != nil {
			g.set(storetest.RecordsTable, p, attribute, value)
			return
		}
	}
	g.t.Fatalf("no record %s", key)
}

// waitKey is the place in line of the job that waits.
func (g *garden) waitKey() at {
	return at{"dataset#acme#pairs", fmt.Sprintf("wait#%015d#%s", g.job(g.waiting).UploadedAt.UnixMilli(), g.waiting)}
}

// TestAuditSees plants one contradiction at a time in a sound system: the audit must name it.
func TestAuditSees(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(g *garden)
		want  string
	}{
		"a job that is over and due": {func(g *garden) {
			g.control(theJob(g.done), "due_shard", "due#1")
			g.control(theJob(g.done), "due_at", 1)
		}, "and due: true"},
		"a job that nobody will look at":  {func(g *garden) { g.control(theJob(g.running), "due_at", nil) }, "and due: false"},
		"a failed job without an error":   {func(g *garden) { g.control(theJob(g.done), "Status", "failed") }, "is failed with error"},
		"an error on a job that did well": {func(g *garden) { g.control(theJob(g.done), "Error", job.Failure{Code: "X"}) }, "is partial with error"},
		"a chunk that is gone":            {func(g *garden) { g.remove(theChunk(g.running, 1)) }, "chunks and has"},
		"chunks that overlap":             {func(g *garden) { g.control(theChunk(g.running, 1), "Start.Offset", 5) }, "does not follow"},
		"a chunk done and not counted":    {func(g *garden) { g.control(theChunk(g.running, 1), "Done", true) }, "counts 0 chunks done, 1 are"},
		"a stalled count without marks":   {func(g *garden) { g.control(theJob(g.running), "StalledCount", 1) }, "counts 1 stalled, 0 are"},
		"a mark that is not counted":      {func(g *garden) { g.control(theChunk(g.running, 1), "Stalled", job.Stalled{Chunk: 1}) }, "counts 0 stalled, 1 are"},
		"quarantined rows behind a chunk that says it has none": {func(g *garden) {
			g.control(theChunk(g.done, g.chunkOf(3)), "rejected", 0)
		}, "has quarantined rows and says it has none"},
		"a job over with an open plan": {func(g *garden) { g.control(theJob(g.done), "Plan.Closed", false) }, "with an open plan"},
		"a job over with an open chunk": {func(g *garden) {
			g.control(theChunk(g.done, 0), "Done", false)
			g.control(theJob(g.done), "Plan.ChunksDone", g.job(g.done).Plan.ChunksDone-1)
		}, "open chunks"},
		"a job over without a result":        {func(g *garden) { g.control(theJob(g.done), "Result", nil) }, "no result"},
		"a marked chunk that did not run":    {func(g *garden) { g.control(theChunk(g.done, 0), "Again", true) }, "marked to run again"},
		"chunks that counted something else": {func(g *garden) { g.control(theChunk(g.done, 0), "Counters.Created", 7) }, "chunks say"},
		"rows that are not accounted for":    {func(g *garden) { g.control(theJob(g.done), "Result.RowsUnprocessed", 1) }, "accounted for"},
		"a total that is none":               {func(g *garden) { g.control(theJob(g.done), "Result.RowsTotal", 9) }, "accounted for"},
		"a quarantined row that is gone":     {func(g *garden) { g.remove(theRow(g.done, g.chunkOf(3), 3)) }, "quarantine has 0"},
		"a quarantined row too many": {func(g *garden) {
			g.put(theRow(g.done, g.chunkOf(3), 99), map[string]types.AttributeValue{"rn": &types.AttributeValueMemberN{Value: "99"}})
		}, "quarantined row 99 is not one"},
		"an applied row without its entry":       {func(g *garden) { g.record("d", "e0", nil) }, "records carry its entry"},
		"an entry that nobody counted":           {func(g *garden) { g.record("d", "b0", g.hash("d")) }, "records say"},
		"an entry of a row that was not reached": {func(g *garden) { g.record("d", "r0", 99) }, "did not settle"},
		"a row that was applied twice":           {func(g *garden) { g.record("d", "r0", 5); g.record("d", "c0", g.chunkOf(5)) }, "another outcome as well"},
		"a row applied and quarantined":          {func(g *garden) { g.record("d", "r0", 3); g.record("d", "c0", g.chunkOf(3)) }, "another outcome as well"},
		"a counter of active jobs that is off":   {func(g *garden) { g.control(theActives, "active", 9) }, "counts 9 active"},
		"a counter of uploads that is off":       {func(g *garden) { g.control(theActives, "uploading", 0) }, "0 uploading jobs"},
		"a client without counters":              {func(g *garden) { g.remove(theActives) }, "has jobs and no counter"},
		"a slot held by a job that is over":      {func(g *garden) { g.holders(string(g.done), 0) }, "is partial with slot 0"},
		"a slot that is not held":                {func(g *garden) { g.holders("", 1) }, "the dataset says it has []"},
		"a job that holds two slots":             {func(g *garden) { g.holders(string(g.queued), 0) }, "the dataset says it has [0 1]"},
		"a slot held by nobody":                  {func(g *garden) { g.holders("job_x", 1) }, "job_x holds a slot and does not exist"},
		"somebody unknown in line": {func(g *garden) {
			g.put(at{"dataset#acme#pairs", "wait#999999999999999#job_x"}, nil)
		}, "job_x waits for a slot and does not exist"},
		"a free slot beside a line": {func(g *garden) { g.holders("", 3) }, "beside free slots"},
		"a job that waits nowhere":  {func(g *garden) { g.remove(g.waitKey()) }, "in line: false"},
		"a line that counts wrong":  {func(g *garden) { g.control(theSlots, "Waiting", 2) }, "counts 2 jobs in line"},
		"an epoch given twice":      {func(g *garden) { g.control(theJob(g.queued), "Epoch", g.job(g.running).Epoch) }, "of one dataset"},
		"a key that names no job": {func(g *garden) {
			g.put(at{"idem#acme#loader#x", "idem"}, map[string]types.AttributeValue{"ref": &types.AttributeValueMemberS{Value: "job_x"}})
		}, "idem names job_x"},
		"a deduplication key that names no job": {func(g *garden) {
			g.put(at{"dedupe#acme#import#x", "dedupe"}, map[string]types.AttributeValue{"job_id": &types.AttributeValueMemberS{Value: "job_x"}})
		}, "dedupe names job_x"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGarden(t)
				sound := g.audited(t)
				if len(sound.Violations) > 0 {
					t.Fatalf("before: %q", sound.Violations)
				}
				c.plant(g)
				got := g.audited(t)
				if !strings.Contains(strings.Join(got.Violations, "\n"), c.want) {
					t.Errorf("found %q, want one with %q", got.Violations, c.want)
				}
				if got.Digest == sound.Digest {
					t.Error("the digest did not change")
				}
			})
		})
	}
}

// Messages are not in the tables.
func TestAuditSeesMessagesOfNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGarden(t)
		for _, body := range []string{`{"kind":"plan","tenant":"acme","job_id":"job_x","chunk":-1}`, "not a hint"} {
			if got := g.audited(t, body).Violations; len(got) != 1 || !strings.Contains(got[0], "names no job") {
				t.Errorf("message %s: %q", body, got)
			}
		}
	})
}

// chunkOf is the chunk that a row of the finished job is in.
func (g *garden) chunkOf(row int64) int {
	for _, c := range g.chunks(g.done) {
		if row >= c.Start.Row && row < c.End.Row {
			return c.Index
		}
	}
	g.t.Fatalf("no chunk has row %d", row)
	return 0
}

// hash is the content hash of a record.
func (g *garden) hash(key string) []byte {
	for shard := range 32 {
		got, err := g.db.GetItem(g.t.Context(), &dynamodb.GetItemInput{TableName: aws.String(storetest.RecordsTable), Key: at{fmt.Sprintf("acme#pairs#%02d", shard), key}.key()})
		if err != nil {
			g.t.Fatal(err)
		}
		if h, ok := got.Item["h"].(*types.AttributeValueMemberB); ok {
			return h.Value
		}
	}
	g.t.Fatalf("no record %s", key)
	return nil
}

// holders puts a job into a slot of the dataset, without asking.
func (g *garden) holders(jobID string, slot int) {
	var line struct{ Holders []string }
	got, err := g.db.GetItem(g.t.Context(), &dynamodb.GetItemInput{TableName: aws.String(storetest.ControlTable), Key: theSlots.key()})
	if err == nil {
		err = attributevalue.UnmarshalMap(got.Item, &line)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	line.Holders[slot] = jobID
	g.control(theSlots, "Holders", line.Holders)
}
