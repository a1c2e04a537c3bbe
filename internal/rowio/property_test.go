package rowio

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// nasty are the pieces that files of the property tests are made of.
var nasty = []string{
	"a", "b", ",", ";", `"`, `""`, `","`, `x",":`, "\n", "\r", "\r\n", "\r\r\n", "\n\n",
	"\x00", "é", "\xC3", "\xE9", " ", `\`, `\"`, `\,`, "#", "\u2028", "\u0085", "\v", "\f",
	"a,b\n", `"a",b` + "\n", `"a` + "\n" + `b",c` + "\n",
}

func drawFile(t *rapid.T) []byte {
	parts := rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 40).Draw(t, "parts")
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString(p)
	}
	return b.Bytes()
}

func drawLayout(t *rapid.T) Layout {
	d := Dialect{
		Delimiter:        rapid.SampledFrom([]string{",", ";"}).Draw(t, "delimiter"),
		EscapeChar:       rapid.SampledFrom([]string{"", "", `\`}).Draw(t, "escape"),
		CommentChar:      rapid.SampledFrom([]string{"", "", "#"}).Draw(t, "comment"),
		SkipInitialSpace: rapid.SampledFrom([]bool{false, false, true}).Draw(t, "skip"),
	}
	if d.EscapeChar != "" {
		doubled := rapid.Bool().Draw(t, "doubled")
		d.DoubleQuote = &doubled
	}
	return Layout{
		Format: FormatCSV, Dialect: d.resolved(),
		RecordEnd:      rapid.SampledFrom([]RecordEnd{RecordEndLF, RecordEndLF, RecordEndCRLF, RecordEndCR}).Draw(t, "record end"),
		MaxRecordBytes: rapid.SampledFrom([]int{1, 2, 3, 5, 8, 13, 21, 34, 1 << 10}).Draw(t, "max"),
		Columns:        rapid.IntRange(0, 3).Draw(t, "columns"),
		DataStart:      Position{Line: 1, Row: 1},
	}
}

func drawSlow(t *rapid.T) slow {
	return rapid.SampledFrom([]slow{
		asIs, iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader,
		func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
	}).Draw(t, "reads")
}

func TestAnyBytesReadAsTheReferenceReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, l := drawFile(t), drawLayout(t)
		window := rapid.SampledFrom([]int{0, 1, 2, 3, 7, 16, 64}).Draw(t, "window")
		checkWhole(t, data, l, drawSlow(t), window)
	})
}

func TestChunksOfAnySizeHoldTheSameRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, l := drawFile(t), drawLayout(t)
		window := rapid.SampledFrom([]int{0, 1, 2, 3, 7, 16, 64}).Draw(t, "window")
		target := rapid.Int64Range(0, 64).Draw(t, "target")
		checkChunks(t, data, l, target, drawSlow(t), window)
	})
}

func TestReadingGoesOnFromAnyPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkResume(t, drawFile(t), drawLayout(t))
	})
}

func TestChunksTellMixedRecordEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, l := drawFile(t), drawLayout(t)
		want := readReference(data, l)
		for _, c := range splitAll(t, data, l, rapid.Int64Range(0, 64).Draw(t, "target"), asIs, 0) {
			mixed := false
			for i, end := range want.ends {
				if end.Offset > c.Start.Offset && end.Offset <= c.End.Offset {
					mixed = mixed || want.mixed[i]
				}
			}
			if mixed != c.MixedEnds {
				t.Fatalf("chunk %+v of %q: mixed ends %v, want %v", c, data, c.MixedEnds, mixed)
			}
		}
	})
}
