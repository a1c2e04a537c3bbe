package ddb_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/localstack/ddb"
)

// clock is a settable Config.Now.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// reopened is a fixture whose server can be closed and opened again on the same directory.
type reopened struct {
	*fixture
	dir    string
	server *ddb.Server
	clock  *clock
}

func newReopened(t *testing.T) *reopened {
	r := &reopened{dir: t.TempDir(), clock: &clock{start}, fixture: &fixture{T: t, table: "kept"}}
	r.open()
	t.Cleanup(func() { r.close() })
	r.create([]types.GlobalSecondaryIndex{indexOn("gsi", types.ProjectionTypeKeysOnly)})
	return r
}

func (r *reopened) open() {
	r.Helper()
	server, err := ddb.New(ddb.Config{Dir: r.dir, Now: r.clock.now})
	if err != nil {
		r.Fatal(err)
	}
	r.server = server
	r.db = connect(serve(r.T, server))
}

func (r *reopened) close() {
	r.Helper()
	if err := r.server.Close(); err != nil {
		r.Fatal(err)
	}
}

func (r *reopened) reopen() {
	r.Helper()
	r.close()
	r.open()
}

func (r *reopened) log() string { return filepath.Join(r.dir, "dynamodb.log") }

func TestStateSurvivesRestart(t *testing.T) {
	r := newReopened(t)
	it := withKey("k", "1", item{"gpk": str("G"), "gsk": num("1.5"), "b": bin(0, 1), "s": str("line\nbreak \u2028"), "set": numSet("1", "2"), "l": listOf(null(), boolean(true))})
	r.put(it)
	r.put(withKey("k", "gone", nil))
	if _, err := r.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &r.table, Key: keyOf("k", "gone")}); err != nil {
		t.Fatal(err)
	}
	if err := r.transact(r.txUpdate("k", "2", "ADD n :v", item{":v": num("2")}), r.txPut(keyOf("k", "3"), "")); err != nil {
		t.Fatal(err)
	}
	other := &fixture{T: t, db: r.db, table: "dropped"}
	other.create(nil)
	if _, err := r.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &other.table}); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	same(t, "item", r.get("k", "1"), it)
	same(t, "deleted", r.get("k", "gone"), item(nil))
	same(t, "of a transaction", r.get("k", "2"), withKey("k", "2", item{"n": num("2")}))
	found := r.query(dynamodb.QueryInput{IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :g"), ExpressionAttributeValues: item{":g": str("G")}})
	same(t, "through the index", sortKeys(found.Items), []string{"1"})
	tables, err := r.db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "tables", tables.TableNames, []string{"kept"})
}

func TestTornLineIsDropped(t *testing.T) {
	r := newReopened(t)
	r.put(withKey("k", "1", nil))
	r.close()
	whole, err := os.ReadFile(r.log())
	if err != nil {
		t.Fatal(err)
	}
	for name, torn := range map[string]string{
		"half a line": `{"Writes":[{"Table":"kept","Put":{"pk":{"S":"k"},"sk":{"S":"2`, "without its end": `{"Writes":[{"Table":"kept","Put":{"pk":{"S":"k"},"sk":{"S":"2"}}}]}`,
		"zeros": "\x00\x00\x00\x00", "zeros and an end": "\x00\x00\n", "a transaction cut": `{"Writes":[{"Table":"kept","Put":{"pk":{"S":"k"},"sk":{"S":"2"}}},`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(r.log(), append(bytes.Clone(whole), torn...), 0o644); err != nil {
				t.Fatal(err)
			}
			r.open()
			same(t, "before it", r.get("k", "1"), keyOf("k", "1"))
			same(t, "of it", r.get("k", "2"), item(nil))
			r.put(withKey("k", "3", nil))
			r.reopen()
			same(t, "after it", r.get("k", "3"), keyOf("k", "3"))
			r.close()
		})
	}
	r.open()
}

func TestDamagedLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	log := []byte("{\"Drop\":\"a\"}\n{\"Drop\":\n{\"Drop\":\"b\"}\n")
	if err := os.WriteFile(filepath.Join(dir, "dynamodb.log"), log, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := ddb.New(ddb.Config{Dir: dir}); err == nil {
		s.Close()
		t.Fatal("opened a log with a damaged line in the middle")
	}
	kept, err := os.ReadFile(filepath.Join(dir, "dynamodb.log"))
	if err != nil || !bytes.Equal(kept, log) {
		t.Errorf("the damaged log was changed: %q, %v", kept, err)
	}
}

func TestLogIsCompacted(t *testing.T) {
	r := newReopened(t)
	for i := range 1200 {
		r.put(withKey("k", fmt.Sprint(i%3), item{"n": num(fmt.Sprint(i))}))
	}
	before := r.logSize()
	r.reopen()
	if after := r.logSize(); after*10 > before {
		t.Errorf("log of %d bytes compacted to %d", before, after)
	}
	for i := range 3 {
		same(t, "item", r.get("k", fmt.Sprint(i)), withKey("k", fmt.Sprint(i), item{"n": num(fmt.Sprint(1197 + i))}))
	}
	r.put(keyOf("k", "later"))
	r.reopen()
	same(t, "written after compaction", r.get("k", "later"), keyOf("k", "later"))
}

func (r *reopened) logSize() int64 {
	r.Helper()
	info, err := os.Stat(r.log())
	if err != nil {
		r.Fatal(err)
	}
	return info.Size()
}

func TestTokenLastsTenMinutesAcrossRestart(t *testing.T) {
	r := newReopened(t)
	send := func() error {
		_, err := r.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: ptr("token"),
			TransactItems: []types.TransactWriteItem{r.txUpdate("k", "n", "ADD n :v", item{":v": num("1")})}})
		return err
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "1"}, {time.Minute, "1"}, {8 * time.Minute, "1"}, {time.Minute, "2"}} {
		r.clock.at = r.clock.at.Add(step.after)
		if err := send(); err != nil {
			t.Fatal(err)
		}
		same(t, "after "+step.after.String(), r.get("k", "n")["n"], num(step.want))
		r.reopen()
	}
}

func TestExpiredItemsAreRemoved(t *testing.T) {
	r := newReopened(t)
	if _, err := r.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &r.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: ptr(true), AttributeName: ptr("ttl")}}); err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) av { return num(fmt.Sprint(start.Add(d).Unix())) }
	for s, ttl := range map[string]av{
		"soon": at(time.Minute), "moved": at(time.Minute), "later": at(time.Hour), "text": str("1"), "ancient": num("1000"), "gone": at(time.Minute),
	} {
		r.put(withKey("k", s, item{"ttl": ttl, "gpk": str("G"), "gsk": num("1")}))
	}
	if _, err := r.update("k", "moved", "SET #t = :v", map[string]string{"#t": "ttl"}, item{":v": at(2 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &r.table, Key: keyOf("k", "gone")}); err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		return sortKeys(r.query(dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: item{":p": str("k")}}).Items)
	}
	same(t, "at first", left(), []string{"ancient", "later", "moved", "soon", "text"})
	r.clock.at = start.Add(2 * time.Minute)
	same(t, "after two minutes, by the way of a request", left(), []string{"ancient", "later", "moved", "text"})
	r.clock.at = start.Add(90 * time.Minute)
	if n, err := r.server.RemoveExpired(); n != 1 || err != nil {
		t.Errorf("removed %d, %v; want 1", n, err)
	}
	r.reopen()
	same(t, "after restart", left(), []string{"ancient", "moved", "text"})
	index := r.query(dynamodb.QueryInput{IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :g"), ExpressionAttributeValues: item{":g": str("G")}})
	if index.Count != 3 {
		t.Errorf("%d items in the index, want 3", index.Count)
	}
	r.clock.at = start.Add(3 * time.Hour)
	same(t, "TTL kept across restart", left(), []string{"ancient", "text"})
}

func TestRestore(t *testing.T) {
	r := newReopened(t)
	r.put(withKey("k", "1", item{"n": num("1"), "gpk": str("G"), "gsk": num("1")}))
	saved, err := r.server.Snapshot("kept")
	if err != nil {
		t.Fatal(err)
	}
	r.put(withKey("k", "1", item{"n": num("2")}))
	r.put(withKey("k", "2", nil))
	for name, check := range map[string]func(){"at once": func() {}, "after restart": r.reopen} {
		if err := r.server.Restore("kept", saved); err != nil {
			t.Fatal(err)
		}
		if err := r.server.Restore("copy", saved); err != nil {
			t.Fatal(err)
		}
		check()
		same(t, "older value "+name, r.get("k", "1")["n"], num("1"))
		same(t, "younger item "+name, r.get("k", "2"), item(nil))
		copied := &fixture{T: t, db: r.db, table: "copy"}
		found := copied.query(dynamodb.QueryInput{IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :g"), ExpressionAttributeValues: item{":g": str("G")}})
		same(t, "copy, through its index "+name, sortKeys(found.Items), []string{"1"})
		r.put(withKey("k", "2", nil))
	}
	if err := r.server.Restore("kept", []byte("{")); err == nil {
		t.Error("restored from half a snapshot")
	}
	if _, err := r.server.Snapshot("nope"); err == nil {
		t.Error("snapshot of a missing table")
	}
}

func TestWritesFailAfterClose(t *testing.T) {
	r := newReopened(t)
	r.put(keyOf("k", "1"))
	r.close()
	_, err := r.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.table, Item: keyOf("k", "2")})
	refused(t, err, "InternalServerError", "closed")
	same(t, "unwritten", r.get("k", "2"), item(nil))
	r.open()
}
