package permissions_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/client"
	"pintu/internal/fault"
	"pintu/localstack/faults"
	"pintu/localstack/permissions"
	"pintu/localstack/stack"
)

// watched starts a stack whose every call is held against the roles. Refused gives what was not allowed.
func watched(t *testing.T) (s *stack.Stack, c *client.Client, refused func() []string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s, err = stack.Start(t.Context(), stack.Config{Root: root, Log: testLog{t}, RedeliverAtOnce: true, Env: map[string]map[string]string{"*": {"PINTU_CHUNK_BYTES": "256"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	refused = watch(t, s, filepath.Join(root, "template.yaml"))
	store := dynamostore.New(dynamostore.Config{AWS: s.Client(), ControlTable: s.Env("ApiFunction")["PINTU_CONTROL_TABLE"]})
	token, err := access.New(access.Config{Store: store, Now: time.Now}).CreateClient(t.Context(), "acme", "loader", access.Scopes, access.DefaultLimits(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c, err = client.New(client.Config{BaseURL: s.URL(), Token: token, RetryFor: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, refused
}

// testLog shows what functions print only when the test fails.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimRight(string(b), "\n"))
	}
	return len(b), nil
}

// watch looks at every call through a rule that never fires.
func watch(t *testing.T, s *stack.Stack, path string) (refused func() []string) {
	t.Helper()
	roles, err := permissions.Read(path, s.System())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var found []string
	looked := 0
	s.Faults().Add(faults.Rule{Match: func(c faults.Call) bool {
		err := roles.Check(c)
		mu.Lock()
		defer mu.Unlock()
		looked++
		if err != nil {
			found = append(found, err.Error())
		}
		return false
	}})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		if looked == 0 {
			t.Error("no call was looked at")
		}
		return found
	}
}

// Everything a client and an operator can make the functions do runs within the roles of the template.
func TestFunctionsNeedNoMoreThanTheirRolesAllow(t *testing.T) {
	s, c, refused := watched(t)
	ctx := t.Context()
	definition := json.RawMessage(`{"schema":{"primaryKey":["k"],"fields":[{"name":"k","type":"string"},{"name":"v","type":"integer"}]}}`)
	if _, _, err := c.PutDataset(ctx, "pairs", definition, "put-1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.PutDataset(ctx, "pairs", definition, "put-2"); err != nil {
		t.Fatal(err)
	}
	done := imported(t, c, "first", file(60))
	if done.Status != client.Partial {
		t.Errorf("status %s, want partial", done.Status)
	}
	reads(t, ctx, c, done.ID)
	canceled(t, ctx, c)
	abandoned(t, ctx, s, c)
	for _, text := range refused() {
		t.Error(text)
	}
}

// file has n rows; some cannot be typed, some share a key.
func file(n int) string {
	var b strings.Builder
	b.WriteString("k,v\n")
	for i := range n {
		fmt.Fprintf(&b, "key-%d,%s\n", i%(n-5), map[bool]string{true: "x", false: "7"}[i%9 == 4])
	}
	return b.String()
}

func spec(content string) client.ImportSpec {
	return client.ImportSpec{Dataset: "pairs", File: client.File{Name: "pairs.csv", SizeBytes: int64(len(content)), ContentType: "text/csv"}}
}

func imported(t *testing.T, c *client.Client, key, content string) client.Job {
	t.Helper()
	s, err := c.Import(t.Context(), spec(content), key, strings.NewReader(content), nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.Wait(t.Context(), s.Job.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// reads asks for everything there is to read.
func reads(t *testing.T, ctx context.Context, c *client.Client, jobID string) {
	t.Helper()
	_, jobs := c.Jobs(ctx, client.JobFilter{}, "", 10)
	_, rows := c.Rows(ctx, jobID, client.RowFilter{}, "", 10)
	_, records := c.Records(ctx, "pairs", "", 10)
	_, record := c.Record(ctx, "pairs", "key-1")
	_, dataset := c.Dataset(ctx, "pairs", 1)
	for what, err := range map[string]error{"jobs": jobs, "rows": rows, "records": records, "record": record, "dataset": dataset,
		"rejected.csv": c.Artifact(ctx, jobID, "rejected.csv", io.Discard)} {
		if err != nil {
			t.Errorf("read %s: %v", what, err)
		}
	}
}

// canceled ends a job that waits for its file and has none.
func canceled(t *testing.T, ctx context.Context, c *client.Client) {
	t.Helper()
	s, err := c.SubmitImport(ctx, spec("k,v\na,1\n"), rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RenewUpload(ctx, s.Job.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Complete(ctx, s.Job.ID, rand.Text()); !client.Is(err, fault.UploadNotFound) {
		t.Errorf("complete without a file: %v", err)
	}
	if _, err := c.Cancel(ctx, s.Job.ID, rand.Text()); err != nil {
		t.Error(err)
	}
}

// abandoned leaves one job after its upload, which sweep completes, and one before it, which sweep leaves alone.
func abandoned(t *testing.T, ctx context.Context, s *stack.Stack, c *client.Client) {
	t.Helper()
	content := "k,v\nlate,1\n"
	left, err := c.SubmitImport(ctx, spec(content), rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Upload(ctx, *left.Upload, strings.NewReader(content), int64(len(content)), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubmitImport(ctx, spec(content), rand.Text()); err != nil {
		t.Fatal(err)
	}
	makeDue(t, ctx, s)
	if err := s.FireSchedules(ctx); err != nil {
		t.Fatal(err)
	}
	if j, err := c.Wait(ctx, left.Job.ID, nil); err != nil || j.Status != client.Succeeded {
		t.Errorf("the upload that was left: %s %v", j.Status, err)
	}
}

// makeDue moves the due time of every job into the past.
func makeDue(t *testing.T, ctx context.Context, s *stack.Stack) {
	t.Helper()
	db, table := dynamodb.NewFromConfig(s.Client()), s.Env("ApiFunction")["PINTU_CONTROL_TABLE"]
	page, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: &table, FilterExpression: aws.String("attribute_exists(due_at)")})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Items {
		_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &table, Key: map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]},
			UpdateExpression: aws.String("SET due_at = :past"), ExpressionAttributeValues: map[string]types.AttributeValue{":past": &types.AttributeValueMemberN{Value: "1"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(page.Items) < 2 {
		t.Errorf("%d jobs were due, want the two that wait for their file", len(page.Items))
	}
}
