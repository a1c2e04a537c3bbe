package dynamostore

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/quarantine"
)

func TestRowItemRoundTrip(t *testing.T) {
	job := id.NewJob(time.UnixMilli(1))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		row := quarantine.Row{
			RowNumber:      rapid.Int64Range(1, 1<<40).Draw(t, "row"),
			Chunk:          rapid.IntRange(0, 99_999_999).Draw(t, "chunk"),
			Line:           rapid.Int64Range(1, 1<<40).Draw(t, "line"),
			Offset:         rapid.Int64Range(0, 1<<50).Draw(t, "offset"),
			State:          quarantine.Quarantined,
			Code:           fault.TypeMismatch,
			Class:          quarantine.Data,
			Field:          text.Draw(t, "field"),
			Message:        text.Draw(t, "message"),
			Attempts:       rapid.IntRange(1, 9).Draw(t, "attempts"),
			DatasetVersion: rapid.IntRange(1, 9).Draw(t, "version"),
			ResolvedBy:     text.Draw(t, "resolved"),
			Rev:            rapid.Int64Range(0, 1<<40).Draw(t, "rev"),
			CreatedAt:      time.UnixMilli(rapid.Int64Range(1, 1<<42).Draw(t, "at")).UTC(),
		}
		if rapid.Bool().Draw(t, "large") {
			row.RawKey = "raw/t/" + string(job)
		} else {
			row.Raw = rapid.SliceOf(rapid.Byte()).Draw(t, "raw")
		}
		if diff := cmp.Diff(row, rowFrom(rowItem("t", job, row)), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
