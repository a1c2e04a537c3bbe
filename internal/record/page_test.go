package record

import (
	"encoding/json"
	"testing"
	"time"
)

func TestRecordJSON(t *testing.T) {
	r := Record{
		Key: "A<1",
		Values: []Value{
			{"order_id", String, "A<1"},
			{"total", Number, "359999.500000000000000000000000000001"},
			{"paid", Bool, "true"},
			{"refunded", Bool, "false"},
			{"note", Null, ""},
		},
		Version: 3, UpdatedAt: time.Date(2026, 7, 27, 10, 15, 30, 0, time.FixedZone("WIB", 7*3600)),
		Source: Source{JobID: "job_1", RowNumber: 7},
	}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"key":"A\u003c1","values":{"order_id":"A\u003c1","total":359999.500000000000000000000000000001,"paid":true,"refunded":false,"note":null},` +
		`"version":3,"updated_at":"2026-07-27T03:15:30Z","source":{"job_id":"job_1","row_number":7}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNumberThatIsNoneIsRefused(t *testing.T) {
	if b, err := json.Marshal(Value{Kind: Number, Text: "1,5"}); err == nil {
		t.Errorf("wrote %s", b)
	}
}
