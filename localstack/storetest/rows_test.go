package storetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"pintu/internal/aws/dynamostore"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/quarantine"
)

const rowsJob = id.Job("job_01JZZZZZZZZZZZZZZZZZZZZZZZ")

func putChunk(t *testing.T, cfg aws.Config, job id.Job, chunk, rejected int) {
	t.Helper()
	putItem(t, cfg, ControlTable, item{
		"pk": str("job#acme#" + string(job)), "sk": str(fmt.Sprintf("chunk#%08d", chunk)), "rejected": num(fmt.Sprint(rejected)),
	})
}

func putRow(t *testing.T, cfg aws.Config, job id.Job, chunk, row int, code, class, state string, raw []byte) {
	t.Helper()
	putItem(t, cfg, ControlTable, item{
		"pk": str(fmt.Sprintf("rows#acme#%s#%08d", job, chunk)), "sk": str(fmt.Sprintf("%012d", row)),
		"rn": num(fmt.Sprint(row)), "ck": num(fmt.Sprint(chunk)), "ln": num(fmt.Sprint(row + 1)), "of": num("10"),
		"raw": &types.AttributeValueMemberB{Value: raw}, "st": str(state), "co": str(code), "cl": str(class),
		"me": str("bad"), "at": num("1"), "dv": num("2"), "rev": num("1"), "ca": num("1785147330123"),
	})
}

// fillRows makes three chunks with rows 1 to 4, 12 and 21 to 25; the second of four chunks has none.
func fillRows(t *testing.T, cfg aws.Config) (all []int64) {
	t.Helper()
	putItem(t, cfg, ControlTable, item{"pk": str("job#acme#" + string(rowsJob)), "sk": str("job")})
	for chunk, rows := range map[int][]int{0: {1, 2, 3, 4}, 1: {}, 2: {12}, 11: {21, 22, 23, 24, 25}} {
		putChunk(t, cfg, rowsJob, chunk, len(rows))
		for _, row := range rows {
			code, class, state := "TYPE_MISMATCH", "data", "quarantined"
			if row%2 == 0 {
				code, class = "MISSING_VALUE", "code"
			}
			if row%3 == 0 {
				state = "resolved"
			}
			putRow(t, cfg, rowsJob, chunk, row, code, class, state, []byte(fmt.Sprintf("%d,\"x\"\n", row)))
		}
	}
	other := id.Job("job_01JZZZZZZZZZZZZZZZZZZZZZZA")
	putChunk(t, cfg, other, 0, 1)
	putRow(t, cfg, other, 0, 1, "TYPE_MISMATCH", "data", "quarantined", []byte{})
	return []int64{1, 2, 3, 4, 12, 21, 22, 23, 24, 25}
}

func listRows(t *testing.T, store *dynamostore.Store, f quarantine.Filter, limit int) (rows []int64) {
	t.Helper()
	cursor := ""
	for {
		page, err := store.ListRows(t.Context(), "acme", rowsJob, f, cursor, limit, roomy)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Rows) > limit {
			t.Errorf("a page of %d rows, limit %d", len(page.Rows), limit)
		}
		for _, r := range page.Rows {
			rows = append(rows, r.RowNumber)
		}
		if cursor = page.NextCursor; cursor == "" {
			return rows
		}
	}
}

func TestListRowsByPages(t *testing.T) {
	store, _, cfg := Start(t)
	all := fillRows(t, cfg)
	for _, limit := range []int{1, 2, 3, 4, 5, 9, 10, 11, 1000} {
		if diff := cmp.Diff(all, listRows(t, store, quarantine.Filter{}, limit)); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
	}
}

func TestListRowsByFilter(t *testing.T) {
	store, _, cfg := Start(t)
	fillRows(t, cfg)
	tests := []struct {
		name string
		f    quarantine.Filter
		want []int64
	}{
		{"state", quarantine.Filter{State: quarantine.Resolved}, []int64{3, 12, 21, 24}},
		{"code", quarantine.Filter{Code: fault.MissingValue}, []int64{2, 4, 12, 22, 24}},
		{"class", quarantine.Filter{Class: quarantine.Data}, []int64{1, 3, 21, 23, 25}},
		{"all three", quarantine.Filter{State: quarantine.Quarantined, Code: fault.TypeMismatch, Class: quarantine.Data}, []int64{1, 23, 25}},
		{"none", quarantine.Filter{State: quarantine.Discarded}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, limit := range []int{1, 2, 1000} {
				if diff := cmp.Diff(tt.want, listRows(t, store, tt.f, limit)); diff != "" {
					t.Errorf("limit %d: %s", limit, diff)
				}
			}
		})
	}
}

func TestListRowsShowsTheWholeRow(t *testing.T) {
	store, _, cfg := Start(t)
	putChunk(t, cfg, rowsJob, 3, 1)
	putRow(t, cfg, rowsJob, 3, 9, "TYPE_MISMATCH", "data", "quarantined", []byte{0xff, '\n'})
	page, err := store.ListRows(t.Context(), "acme", rowsJob, quarantine.Filter{}, "", 10, roomy)
	if err != nil {
		t.Fatal(err)
	}
	want := quarantine.Page{Rows: []quarantine.Row{{
		RowNumber: 9, Chunk: 3, Line: 10, Offset: 10, Raw: []byte{0xff, '\n'}, State: quarantine.Quarantined, Code: fault.TypeMismatch,
		Class: quarantine.Data, Message: "bad", Attempts: 1, DatasetVersion: 2, Rev: 1, CreatedAt: time.UnixMilli(1785147330123).UTC(),
	}}}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Error(diff)
	}
}

func TestListRowsEndsPagesBySize(t *testing.T) {
	store, _, cfg := Start(t)
	putChunk(t, cfg, rowsJob, 0, 12)
	for row := range 12 {
		putRow(t, cfg, rowsJob, 0, row+1, "TYPE_MISMATCH", "data", "quarantined", []byte(strings.Repeat(`"`, 40<<10)))
	}
	const maxBytes = 510_000 // a quote of a raw payload takes four bytes in the end
	cursor, seen := "", 0
	for {
		page, err := store.ListRows(t.Context(), "acme", rowsJob, quarantine.Filter{}, cursor, 1000, maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(page.Rows)
		if err != nil {
			t.Fatal(err)
		}
		if inside, err := json.Marshal(string(body)); len(inside) > maxBytes || err != nil {
			t.Errorf("a page of %d bytes, %v", len(inside), err)
		}
		if seen += len(page.Rows); len(page.Rows) != 3 && seen < 12 {
			t.Errorf("a page of %d rows", len(page.Rows))
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if seen != 12 {
		t.Errorf("saw %d rows", seen)
	}
}

// A filter that lets nothing through must not read a whole job in one request.
func TestListRowsBoundsWhatOnePageReads(t *testing.T) {
	store, _, cfg := Start(t)
	for chunk := range 20 {
		putChunk(t, cfg, rowsJob, chunk, 1)
		putRow(t, cfg, rowsJob, chunk, chunk+1, "TYPE_MISMATCH", "data", "quarantined", []byte{})
	}
	page, err := store.ListRows(t.Context(), "acme", rowsJob, quarantine.Filter{Class: quarantine.Code}, "", 10, roomy)
	if err != nil || len(page.Rows) != 0 || page.NextCursor == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	page, err = store.ListRows(t.Context(), "acme", rowsJob, quarantine.Filter{Class: quarantine.Code}, page.NextCursor, 10, roomy)
	if err != nil || page.NextCursor != "" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestListRowsRefusesCursors(t *testing.T) {
	store := New(t)
	for _, cursor := range []string{"%", "bnVsbA", base64.RawURLEncoding.EncodeToString([]byte(`{"c":-1,"r":0}`)), base64.RawURLEncoding.EncodeToString([]byte(`{"s":0,"k":"a"}`))} {
		if page, err := store.ListRows(t.Context(), "acme", rowsJob, quarantine.Filter{}, cursor, 10, roomy); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %+v, %v", cursor, page, err)
		}
	}
}
