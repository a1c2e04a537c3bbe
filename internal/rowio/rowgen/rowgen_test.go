package rowgen

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
)

func TestOrdersAreWellFormedAndRepeatable(t *testing.T) {
	var first, second bytes.Buffer
	rows, err := GenerateOrders(&first, 1<<20, 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := GenerateOrders(&second, 1<<20, 5); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same seed gave other bytes")
	}
	if extra := first.Len() - 1<<20; extra < 0 || extra > 400 {
		t.Errorf("%d bytes", first.Len())
	}
	records, err := csv.NewReader(&first).ReadAll()
	if err != nil || int64(len(records)) != rows+1 {
		t.Fatalf("%d records, %d rows (%v)", len(records), rows, err)
	}
	ids, newlines := map[string]bool{}, 0
	for _, r := range records[1:] {
		ids[r[0]] = true
		newlines += strings.Count(r[2], "\n")
	}
	if int64(len(ids)) != rows || newlines < int(rows)/20 {
		t.Errorf("%d ids, %d newlines in %d rows", len(ids), newlines, rows)
	}
}
