package dynamostore

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pintu/internal/fault"
	"pintu/internal/quarantine"
)

// The room a page counts must be what its JSON takes as a string inside another JSON document.
func TestEscapedLenIsTheLengthInsideAString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := quarantine.Row{Raw: rapid.SliceOf(rapid.Byte()).Draw(t, "raw"), Message: rapid.String().Draw(t, "message")}
		body, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		inside, err := json.Marshal(string(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := escapedLen(body), len(inside)-2; got != want {
			t.Fatalf("escapedLen(%s) = %d, want %d", body, got, want)
		}
	})
}

func TestPageRoom(t *testing.T) {
	row := quarantine.Row{Raw: []byte(`"a","b"`)}
	body, _ := json.Marshal(row)
	size := escapedLen(body) + 1
	tests := []struct {
		name            string
		limit, maxBytes int
		want            int
	}{
		{"ends at its limit", 3, 1 << 20, 3},
		{"ends before its bytes are passed", 100, envelopeBytes + 2*size, 2},
		{"one byte short", 100, envelopeBytes + 2*size - 1, 1},
		{"the first entry always fits", 100, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			room, n := newPageRoom(tt.limit, tt.maxBytes), 0
			for range 10 {
				fits, err := room.take(row)
				if err != nil {
					t.Fatal(err)
				}
				if !fits {
					break
				}
				n++
			}
			if n != tt.want {
				t.Errorf("took %d entries, want %d", n, tt.want)
			}
		})
	}
}

func TestRecordCursor(t *testing.T) {
	shard := 0
	for recordPK("t", "orders", shard) != recordKey("t", "orders", "A1").pk {
		shard++
	}
	tests := []struct {
		name   string
		cursor recordCursor
		want   bool
	}{
		{"start", recordCursor{}, true},
		{"a key in its shard", recordCursor{shard, "A1"}, true},
		{"a key in another shard", recordCursor{(shard + 1) % 32, "A1"}, false},
		{"the start of a shard", recordCursor{3, ""}, true},
		{"a shard below all", recordCursor{-1, "A1"}, false},
		{"a shard beyond all", recordCursor{32, "A1"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.cursor.valid("t", "orders"); got != tt.want {
				t.Errorf("valid = %v, want %v", got, tt.want)
			}
		})
	}
}

// A cursor comes from outside: whatever it is, it is one of ours to the letter or INVALID_REQUEST.
func FuzzDecodeCursor(f *testing.F) {
	for _, position := range []any{recordCursor{}, recordCursor{31, "A1"}, recordCursor{1, `["a","ü"]`}, rowCursor{2, 9}} {
		s, _ := encodeCursor(position)
		f.Add(s)
	}
	f.Add("bnVsbA")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, cursor string) {
		var at recordCursor
		err := decodeCursor(cursor, &at)
		if err != nil {
			if !fault.Is(err, fault.InvalidRequest) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again, _ := encodeCursor(at); cursor != "" && again != cursor {
			t.Fatalf("%q was taken for %q", cursor, again)
		}
	})
}

func TestIdempotencyRecordExpires(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	it := item{attrExpiresAt: num(millis(now)), attrFingerprint: str("f"), attrOutcome: str("created"), attrRef: str("job_1")}
	if idemRecord(it, now) == nil {
		t.Error("a record is gone at the moment it expires; the write's condition says it is still there")
	}
	if idemRecord(it, now.Add(time.Millisecond)) != nil {
		t.Error("a record outlives its expiry")
	}
	if idemRecord(nil, now) != nil {
		t.Error("a record came from nothing")
	}
}
