package rowio

import (
	"bytes"
	"fmt"
)

// signatures of files that are no text, by their first bytes. Words that a
// header could start with are not among them.
var signatures = []struct{ magic, name string }{
	{"PK\x03\x04", "ZIP archive"}, {"PK\x05\x06", "ZIP archive without files"},
	{"\x1F\x8B", "gzip data"}, {"\x28\xB5\x2F\xFD", "zstd data"},
	{"\xFD7zXZ\x00", "xz data"}, {"7z\xBC\xAF\x27\x1C", "7-Zip archive"},
	{"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "old Microsoft Office document (perhaps an XLS workbook)"},
	{"%PDF-", "PDF document"},
	{"\x89PNG\r\n\x1A\n", "PNG image"}, {"\xFF\xD8\xFF", "JPEG image"},
	{"GIF87a", "GIF image"}, {"GIF89a", "GIF image"},
	{"\xFF\xFE\x00\x00", "UTF-32LE text"}, {"\x00\x00\xFE\xFF", "UTF-32BE text"},
	{"\xFF\xFE", "UTF-16LE text"}, {"\xFE\xFF", "UTF-16BE text"},
}

// refuseBinary names what a file is that cannot be read as UTF-8 text. A few NUL
// bytes spoil their rows only; a tenth of the head spoils the file.
func refuseBinary(head []byte, wanted string) *Problem {
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.magic)) {
			name := s.name
			if s.name == "ZIP archive" && bytes.Contains(head, []byte("xl/")) {
				name = "ZIP/XLSX workbook"
			}
			return notText(name, wanted)
		}
	}
	nuls := bytes.Count(head, []byte{0})
	if nuls*10 < max(len(head), 1) {
		return nil
	}
	return notText(nulRidden(head, nuls), wanted)
}

func notText(found, wanted string) *Problem {
	return &Problem{
		Code:    CodeFileNotText,
		Message: fmt.Sprintf("this is %s, not %s in UTF-8; save or convert it as %[2]s in UTF-8 and upload that", found, wanted),
		Details: map[string]any{"found": found},
	}
}

// nulRidden: text of two-byte characters has its NUL bytes at even offsets only
// or at odd ones only.
func nulRidden(head []byte, nuls int) string {
	odd := 0
	for i := 1; i < len(head); i += 2 {
		if head[i] == 0 {
			odd++
		}
	}
	switch {
	case odd == nuls:
		return "UTF-16LE text or binary data"
	case odd == 0:
		return "UTF-16BE text or binary data"
	}
	return "binary data"
}

// guessable are the delimiters that are looked for, the likeliest first.
var guessable = []string{",", ";", "\t", "|"}

// guessRows is how many records are read to judge a delimiter.
const guessRows = 50

// chooseDelimiter guesses the delimiter when none is declared. When one is and
// makes a single column of the header, it notes what the file looks like.
func (in *inspection) chooseDelimiter(declared bool) {
	if declared && in.judge(in.layout.Dialect.Delimiter).columns != 1 {
		return
	}
	best, bestFit := "", fit{columns: 1}
	for _, delim := range guessable {
		if f := in.judge(delim); f.better(bestFit) {
			best, bestFit = delim, f
		}
	}
	switch {
	case best == "":
	case declared:
		in.layout.LooksLike, in.layout.LooksLikeColumns = best, bestFit.columns
	default:
		in.layout.Dialect.Delimiter = best
	}
}

// fit is how well a delimiter explains the head of a file.
type fit struct {
	columns     int // cells of the first record
	rows, agree int // records behind it, and those with as many cells
}

// better: several columns, then the greater share of rows that agree with the
// header, then the greater number of columns.
func (f fit) better(than fit) bool {
	if f.columns < 2 || than.columns < 2 {
		return f.columns > than.columns
	}
	a, b := f.agree*max(than.rows, 1), than.agree*max(f.rows, 1)
	return a > b || a == b && f.columns > than.columns
}

// judge reads the first records with one delimiter, quotes respected.
func (in *inspection) judge(delim string) fit {
	d := in.layout.Dialect
	d.Delimiter = delim
	if d.Validate() != nil {
		return fit{}
	}
	l := in.reading(d, in.recordEnd(d))
	r := NewReader(bytes.NewReader(in.rest()), l, l.DataStart)
	var f fit
	for range guessRows + 1 {
		rec, err := r.Next()
		cut := !in.whole && r.Position().Offset == int64(len(in.head))
		if err != nil || cut && f.columns > 0 {
			break
		}
		n := len(rec.Fields)
		if f.columns == 0 {
			f.columns = max(n, 1)
			continue
		}
		f.rows++
		if n == f.columns || n == f.columns+1 && len(rec.Fields[n-1]) == 0 {
			f.agree++
		}
	}
	return f
}
