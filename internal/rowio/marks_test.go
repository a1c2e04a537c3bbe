package rowio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMarksAreThoseOfTheBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{",", ",,,,,,,", "a", "\xE9", "\x00", "\xAC", "a quiet stretch of text without any of them, but long"})
		var b bytes.Buffer
		for _, p := range rapid.SliceOfN(piece, 0, 60).Draw(t, "parts") {
			b.WriteString(p)
		}
		buf := b.Bytes()
		m := marks{delim: ','}
		m.restart(buf)
		for from := 0; from < len(buf); {
			to := min(len(buf), from+rapid.IntRange(1, 200).Draw(t, "read"))
			m.add(buf, from, to)
			from = to
		}
		var want []uint32
		for i, c := range buf {
			if c == ',' {
				want = append(want, uint32(i))
			}
		}
		if got := m.delims[:m.count]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("delimiters at %v, want %v", got, want)
		}
		for from := 0; from < len(buf); {
			to := min(len(buf), from+rapid.IntRange(1, 90).Draw(t, "row"))
			for i := range m.ascii(from, to) {
				if buf[from+i] > 0x7F {
					t.Fatalf("byte %d is taken for ASCII", from+i)
				}
			}
			from = to
		}
	})
}

// TestLongFilesReadAsTheReferenceReadsThem goes through many windows.
func TestLongFilesReadAsTheReferenceReadsThem(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var b bytes.Buffer
		for b.Len() < 5*windowBytes {
			if rng.IntN(3) > 0 {
				b.WriteString("plain,\"quoted, cell\",last\n")
			} else {
				b.WriteString(nasty[rng.IntN(len(nasty))])
			}
		}
		l := longLayout(3)
		l.MaxRecordBytes = 1 << (9 + 2*seed)
		checkWhole(t, b.Bytes(), l, asIs, 0)
		checkChunks(t, b.Bytes(), l, 50_000, asIs, 0)
	}
}

func TestASCIIStretchesAreFound(t *testing.T) {
	buf := bytes.Repeat([]byte("a"), 640)
	buf[300] = 0xC3
	m := marks{delim: ','}
	m.restart(buf)
	m.add(buf, 0, len(buf))
	got := []int{m.ascii(0, 100), m.ascii(100, 320), m.ascii(320, 640)}
	if d := cmp.Diff([]int{100, 156, 320}, got); d != "" {
		t.Fatal(d)
	}
}
