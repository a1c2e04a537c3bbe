package rowio

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// caseFile is what one of the collected CSV files must come to. The files are
// read with a declared comma unless the case says otherwise.
type caseFile struct {
	problem  string           // refused with this code
	rows     int64            // data records
	bad      map[int64]string // code by row number
	warnings []string
	trailing bool // every row has one empty cell too many
	end      RecordEnd
}

var (
	comma     = Dialect{Delimiter: ","}
	malformed = CodeMalformedRow
)

var caseFiles = map[string]caseFile{
	"01-bom-utf8.csv":                    {rows: 2},
	"02-bom-quoted-header.csv":           {rows: 1},
	"04-utf16le-bom.csv":                 {problem: CodeFileNotText},
	"06-cp1252.csv":                      {rows: 2, bad: map[int64]string{1: CodeInvalidEncoding}},
	"07-one-bad-utf8-row.csv":            {rows: 3, bad: map[int64]string{2: CodeInvalidEncoding}},
	"08-nul-byte.csv":                    {rows: 2, bad: map[int64]string{1: malformed}},
	"09-control-0x1f.csv":                {rows: 1},
	"10-fortran-looking-line.csv":        {rows: 1},
	"12-cr-only.csv":                     {rows: 2, end: RecordEndCR},
	"14-cr-cr-lf.csv":                    {rows: 2, end: RecordEndCRCRLF},
	"16-last-quoted-no-newline.csv":      {rows: 2},
	"17-bare-cr-unquoted.csv":            {rows: 2, bad: map[int64]string{1: malformed}},
	"19-u2028-nel-ff.csv":                {rows: 3},
	"20-blank-lines.csv":                 {rows: 2},
	"22-quoted-newlines.csv":             {rows: 3},
	"24-lone-quote-unquoted.csv":         {rows: 3},
	"26-text-after-closing-quote.csv":    {rows: 2, bad: map[int64]string{1: malformed}},
	"30-unterminated-quote-eof.csv":      {rows: 2, bad: map[int64]string{2: malformed}},
	"31-backslash-escaped-quotes.csv":    {rows: 2, bad: map[int64]string{1: malformed}},
	"33-copy-end-marker.csv":             {rows: 3},
	"34-empty-vs-quoted-empty.csv":       {rows: 2},
	"35-space-before-quote.csv":          {rows: 2, bad: map[int64]string{1: CodeWrongColumnCount}},
	"37-semicolon-file.csv":              {rows: 2, bad: map[int64]string{1: CodeWrongColumnCount}}, // see TestHeaderOfOneColumn
	"38-sep-line.csv":                    {rows: 1},
	"39-multiline-cell-before-guess.csv": {rows: 1},
	"40-trailing-delimiter-rows.csv":     {rows: 3, trailing: true},
	"41-trailing-delimiter-header.csv":   {rows: 2, trailing: true, warnings: []string{CodeTrailingDelimiter}},
	"42-short-row.csv":                   {rows: 2, bad: map[int64]string{1: CodeWrongColumnCount}},
	"43-long-row.csv":                    {rows: 2, bad: map[int64]string{1: CodeWrongColumnCount}},
	"44-hash-first-column.csv":           {rows: 2},
	"45-single-column.csv":               {rows: 2},
	"46-header-duplicate.csv":            {problem: CodeDuplicateColumns},
	"48-header-spaces.csv":               {rows: 1, warnings: []string{CodeHeaderTrimmed}},
	"49-header-nbsp.csv":                 {rows: 1, warnings: []string{CodeHeaderTrimmed}},
	"50-header-missing-key.csv":          {rows: 1},
	"52-header-only-delimiters.csv":      {problem: CodeHeaderInvalid},
	"53-zero-byte.csv":                   {problem: CodeEmptyFile},
	"54-header-only.csv":                 {rows: 0},
	"55-gzip-named-csv.csv":              {problem: CodeFileNotText},
	"56-xlsx-named-csv.csv":              {problem: CodeFileNotText},
	"57-leading-zeros.csv":               {rows: 2},
	"59-code-with-e.csv":                 {rows: 2},
	"60-exponent-in-integer.csv":         {rows: 3},
	"61-beyond-float53.csv":              {rows: 4},
	"63-decimal-exactness.csv":           {rows: 4},
	"65-decimal-comma.csv":               {rows: 2},
	"69-date-excel-serial.csv":           {rows: 2},
	"70-date-two-digit-year.csv":         {rows: 4},
	"71-na-strings.csv":                  {rows: 4},
	"72-booleans.csv":                    {rows: 10},
	"74-leading-apostrophe.csv":          {rows: 2},
	"75-value-spaces.csv":                {rows: 2},
	"77-duplicate-rows-equal.csv":        {rows: 3},
	"78-key-trailing-space.csv":          {rows: 3},
	"80-empty-key.csv":                   {rows: 3},
	"81-exactly-25-rows.csv":             {rows: 25},
	"83-long-bad-row.csv":                {rows: 2},
	"87-cel-null-discount.csv":           {rows: 3},
}

func readCase(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEveryCaseFileIsListed(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.csv")
	if err != nil || len(files) != len(caseFiles) {
		t.Fatalf("%d files, %d cases (%v)", len(files), len(caseFiles), err)
	}
}

func TestCaseFiles(t *testing.T) {
	for name, want := range caseFiles {
		t.Run(name, func(t *testing.T) {
			data := readCase(t, name)
			l, warnings, err := Inspect(bytes.NewReader(data), comma)
			if want.problem != "" {
				var p *Problem
				if !errors.As(err, &p) || p.Code != want.problem {
					t.Fatalf("got %v, want %s", err, want.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, w := range warnings {
				codes = append(codes, w.Code)
			}
			if d := cmp.Diff(want.warnings, codes); d != "" {
				t.Errorf("warnings (want -, got +):\n%s", d)
			}
			if want.end != "" && l.RecordEnd != want.end || want.end == "" && l.RecordEnd != RecordEndLF {
				t.Errorf("record end %q", l.RecordEnd)
			}
			checkCaseRows(t, data, l, want)
			for _, target := range []int64{16, 64, 1 << 10, 1 << 40} {
				checkChunks(t, data, l, target, asIs, 0)
			}
		})
	}
}

func checkCaseRows(t *testing.T, data []byte, l Layout, want caseFile) {
	t.Helper()
	checkWhole(t, data, l, asIs, 0)
	rows, _, end := readRows(t, bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart, 0)
	if int64(len(rows)) != want.rows || end.Row != want.rows+1 || end.Offset != int64(len(data)) {
		t.Errorf("%d rows up to %+v, want %d", len(rows), end, want.rows)
	}
	for _, row := range rows {
		if row.Code != want.bad[row.Row] || row.Trailing != want.trailing {
			t.Errorf("row %d %q: code %q, trailing %v", row.Row, row.Raw, row.Code, row.Trailing)
		}
		if row.Raw != string(data[row.Offset:row.Offset+int64(len(row.Raw))]) {
			t.Errorf("row %d is not the bytes at %d", row.Row, row.Offset)
		}
	}
}

func TestCaseDetails(t *testing.T) {
	rows := func(name string, d Dialect) []refRow {
		data := readCase(t, name)
		l, _ := mustInspect(t, data, d)
		rows, _, _ := readRows(t, bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart, 0)
		return rows
	}
	last := func(r refRow) string { return r.Fields[len(r.Fields)-1] }
	checks := []struct{ name, got, want string }{
		{"control character stays", last(rows("09-control-0x1f.csv", comma)[0]), "Eam integre\x1F/4000"},
		{"CR CR LF leaves no CR", last(rows("14-cr-cr-lf.csv", comma)[1]), "ok"},
		{"newline in quotes", last(rows("22-quoted-newlines.csv", comma)[0]), "<p>\nsatu, dua\n</p>"},
		{"lone quote", last(rows("24-lone-quote-unquoted.csv", comma)[0]), `kabel 24" hitam`},
		{"escape character", last(rows("31-backslash-escaped-quotes.csv", Dialect{Delimiter: ",", EscapeChar: `\`})[0]), `kata "halo" saja`},
		{"escape before other text", last(rows("33-copy-end-marker.csv", Dialect{Delimiter: ",", EscapeChar: `\`})[2]), `\.`},
		{"skipped space", last(rows("35-space-before-quote.csv", Dialect{Delimiter: ",", SkipInitialSpace: true})[0]), "a, b"},
		{"guess respects quotes", last(rows("39-multiline-cell-before-guess.csv", Dialect{})[0]), "a; b; c\nd; e; f; g\nh; i; j\nk; l; m; n"},
		{"semicolon guessed", rows("37-semicolon-file.csv", Dialect{})[0].Fields[3], "0,58"},
		{"values keep blanks", last(rows("75-value-spaces.csv", comma)[0]), "  Bond  "},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	if r := rows("20-blank-lines.csv", comma); r[0].Line != 3 || r[1].Line != 5 {
		t.Errorf("blank lines: rows on lines %d and %d", r[0].Line, r[1].Line)
	}
	if r := rows("38-sep-line.csv", comma); r[0].Line != 3 || len(r[0].Fields) != 6 {
		t.Errorf("sep line: %+v", r[0])
	}
	if r := rows("83-long-bad-row.csv", comma); len(r[0].Raw) != 12627 {
		t.Errorf("long row: %d bytes", len(r[0].Raw))
	}
	if r := rows("44-hash-first-column.csv", Dialect{Delimiter: ",", CommentChar: "#"}); r != nil {
		t.Errorf("comments read as rows: %v", r)
	}
}
