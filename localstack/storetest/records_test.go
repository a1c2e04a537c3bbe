package storetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"pintu/internal/aws/dynamostore"
	"pintu/internal/fault"
	"pintu/internal/record"
)

const roomy = 4_000_000

// putItem writes one item as it is.
func putItem(t *testing.T, cfg aws.Config, table string, it item) {
	t.Helper()
	_, err := dynamodb.NewFromConfig(cfg).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it})
	if err != nil {
		t.Fatal(err)
	}
}

func shardOf(key string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(key))
	return h.Sum32() % 32
}

func recordItem(dataset, key string, values item) item {
	return item{
		"pk": str(fmt.Sprintf("acme#%s#%02d", dataset, shardOf(key))), "sk": str(key),
		"d": &types.AttributeValueMemberM{Value: values}, "v": num("3"), "u": num("1785147330123"), "j": str("job_1"), "n": num("7"),
		"r0_e": num("99"), // an import's own attribute
	}
}

func TestGetRecord(t *testing.T) {
	store, _, cfg := Start(t)
	putItem(t, cfg, RecordsTable, recordItem("orders", "A1", item{
		"qty": num("2"), "id": str("A1"), "note": &types.AttributeValueMemberNULL{Value: true},
		"paid": &types.AttributeValueMemberBOOL{Value: true}, "total": num("359999.50000000000000000000000000000001"),
	}))
	got, found, err := store.GetRecord(t.Context(), "acme", "orders", "A1")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	want := record.Record{
		Key: "A1", Version: 3, UpdatedAt: time.UnixMilli(1785147330123).UTC(), Source: record.Source{JobID: "job_1", RowNumber: 7},
		Values: []record.Value{
			{Field: "id", Kind: record.String, Text: "A1"}, {Field: "note"}, {Field: "paid", Kind: record.Bool, Text: "true"},
			{Field: "qty", Kind: record.Number, Text: "2"}, {Field: "total", Kind: record.Number, Text: "359999.50000000000000000000000000000001"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"A2", "", strings.Repeat("k", 1025)} {
		if r, found, err := store.GetRecord(t.Context(), "acme", "orders", key); found || err != nil {
			t.Errorf("key of %d bytes: %+v, %v, %v", len(key), r, found, err)
		}
	}
}

// fillRecords writes n records of orders, and one of another dataset, and gives the keys in list order.
func fillRecords(t *testing.T, cfg aws.Config, n int) []string {
	t.Helper()
	var keys []string
	for i := range n {
		key := fmt.Sprintf("K%03d", i)
		keys = append(keys, key)
		putItem(t, cfg, RecordsTable, recordItem("orders", key, item{"id": str(key), "text": str(strings.Repeat(`"`, 100))}))
	}
	putItem(t, cfg, RecordsTable, recordItem("orders2", "X", item{"id": str("X")}))
	slices.SortFunc(keys, func(a, b string) int {
		if d := int(shardOf(a)) - int(shardOf(b)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return keys
}

// listRecords reads every page and gives the keys, and the size of each page as a string inside JSON.
func listRecords(t *testing.T, store *dynamostore.Store, limit, maxBytes int) (keys []string, pages []int, sizes []int) {
	t.Helper()
	cursor := ""
	for {
		page, err := store.ListRecords(t.Context(), "acme", "orders", cursor, limit, maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			keys = append(keys, r.Key)
		}
		body, err := json.Marshal(map[string]any{"records": page.Records, "next_cursor": page.NextCursor})
		if err != nil {
			t.Fatal(err)
		}
		inside, err := json.Marshal(string(body))
		if err != nil {
			t.Fatal(err)
		}
		pages, sizes = append(pages, len(page.Records)), append(sizes, len(inside))
		if cursor = page.NextCursor; cursor == "" {
			return keys, pages, sizes
		}
	}
}

func TestListRecordsByPages(t *testing.T) {
	store, _, cfg := Start(t)
	want := fillRecords(t, cfg, 100)
	for _, limit := range []int{1, 7, 99, 100, 101, 1000} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			keys, pages, _ := listRecords(t, store, limit, roomy)
			if diff := cmp.Diff(want, keys); diff != "" {
				t.Error(diff)
			}
			for i, n := range pages {
				if n > limit || n < limit && i < len(pages)-2 {
					t.Errorf("page %d of %d has %d records", i, len(pages), n)
				}
			}
		})
	}
}

func TestListRecordsEndsPagesBySize(t *testing.T) {
	store, _, cfg := Start(t)
	want := fillRecords(t, cfg, 100)
	const maxBytes = 16 << 10
	keys, pages, sizes := listRecords(t, store, 1000, maxBytes)
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
	for i, size := range sizes {
		if size > maxBytes {
			t.Errorf("page %d has %d bytes", i, size)
		}
	}
	if len(pages) < 3 || len(pages) > 20 {
		t.Errorf("%d pages: %v", len(pages), pages)
	}
}

func TestListRecordsOfNothing(t *testing.T) {
	page, err := New(t).ListRecords(t.Context(), "acme", "orders", "", 10, roomy)
	if err != nil || len(page.Records) != 0 || page.NextCursor != "" {
		t.Errorf("%+v, %v", page, err)
	}
}

// A page reads on where the last one ended, whatever happened to its last record.
func TestListRecordsAfterARecordIsGone(t *testing.T) {
	store, _, cfg := Start(t)
	want := fillRecords(t, cfg, 20)
	page, err := store.ListRecords(t.Context(), "acme", "orders", "", 5, roomy)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dynamodb.NewFromConfig(cfg).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(RecordsTable),
		Key: item{"pk": str(fmt.Sprintf("acme#orders#%02d", shardOf(want[4]))), "sk": str(want[4])}})
	if err != nil {
		t.Fatal(err)
	}
	page, err = store.ListRecords(t.Context(), "acme", "orders", page.NextCursor, 5, roomy)
	if err != nil || page.Records[0].Key != want[5] {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestListRecordsRefusesCursors(t *testing.T) {
	store := New(t)
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, cursor := range map[string]string{
		"no base64":         "%",
		"padding":           encode(fmt.Sprintf(`{"s":%d,"k":"A1"}`, shardOf("A1"))) + "=",
		"no JSON":           encode("x"),
		"null":              encode("null"),
		"other fields":      encode(`{"c":1,"r":2}`),
		"negative shard":    encode(`{"s":-1,"k":"A1"}`),
		"shard too large":   encode(`{"s":32,"k":"A1"}`),
		"key of elsewhere":  encode(fmt.Sprintf(`{"s":%d,"k":"A1"}`, (shardOf("A1")+1)%32)),
		"another partition": encode(`{"s":0,"k":"A1","pk":"other#orders#00"}`),
		"long key":          encode(fmt.Sprintf(`{"s":%d,"k":%q}`, shardOf(strings.Repeat("k", 1025)), strings.Repeat("k", 1025))),
	} {
		t.Run(name, func(t *testing.T) {
			page, err := store.ListRecords(t.Context(), "acme", "orders", cursor, 10, roomy)
			if !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%+v, %v", page, err)
			}
		})
	}
}
