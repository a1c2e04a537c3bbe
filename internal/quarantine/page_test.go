package quarantine

import (
	"encoding/json"
	"testing"
)

func TestRowJSON(t *testing.T) {
	row := Row{RowNumber: 3, Line: 4, Offset: 181, Raw: []byte("A3,\r\n"), State: Quarantined, Code: "MISSING_VALUE", Class: Data,
		Field: "qty", Message: "qty is required", Attempts: 1, DatasetVersion: 1, Rev: 2}
	const head = `{"row_number":3,"line":4,"offset":181,"state":"quarantined","code":"MISSING_VALUE","class":"data",`
	const tail = `,"attempts":1,"dataset_version":1,"etag":"2","retry_job":null,`
	tests := []struct {
		name   string
		change func(*Row)
		want   string
	}{
		{"text", func(*Row) {}, head + `"field":"qty","message":"qty is required","raw":"A3,\r\n"` + tail + `"resolved_by":null,"discard_reason":null}`},
		{"not UTF-8", func(r *Row) { r.Raw = []byte{0xff, 0x00} }, head + `"field":"qty","message":"qty is required","raw":null,"raw_base64":"/wA="` + tail + `"resolved_by":null,"discard_reason":null}`},
		{"kept in the bucket", func(r *Row) { r.Raw, r.RawKey = nil, "raw/1" }, head + `"field":"qty","message":"qty is required","raw":null` + tail + `"resolved_by":null,"discard_reason":null}`},
		{"no bytes at all", func(r *Row) { r.Raw = nil }, head + `"field":"qty","message":"qty is required","raw":""` + tail + `"resolved_by":null,"discard_reason":null}`},
		{"row as a whole, resolved", func(r *Row) { r.Field, r.ResolvedBy = "", "job_2" }, head + `"field":null,"message":"qty is required","raw":"A3,\r\n"` + tail + `"resolved_by":"job_2","discard_reason":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := row
			tt.change(&r)
			got, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
