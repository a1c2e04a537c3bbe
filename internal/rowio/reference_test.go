package rowio

import (
	"unicode/utf8"
)

// reference reads a whole file in memory, byte by byte and without any care for
// speed: the rules of the package in their plainest form.
type reference struct {
	data []byte
	g    grammar
}

type refRow struct {
	Raw               string
	Row, Line, Offset int64
	Fields            []string
	Code              string
	Trailing          bool
}

type refFile struct {
	rows  []refRow
	ends  []Position // behind every record, blank lines and comments included
	mixed []bool     // per record
}

func readReference(data []byte, l Layout) refFile {
	g, err := l.grammar()
	if err != nil {
		panic(err)
	}
	ref := reference{data: data, g: g}
	var f refFile
	pos := l.DataStart
	for int(pos.Offset) < len(data) {
		start := int(pos.Offset)
		end, ok := ref.recordEnd(start)
		isComment := g.comment != 0 && data[start] == g.comment
		if isComment || !ok {
			end = ref.lineEnd(start)
		}
		raw := data[start:end]
		if !isComment && (!ok || len(ref.content(raw)) > 0) {
			f.rows = append(f.rows, ref.row(raw, ok, pos))
			pos.Row++
		}
		pos.Offset = int64(end)
		for _, c := range raw {
			if c == g.end {
				pos.Line++
			}
		}
		f.ends = append(f.ends, pos)
		n := len(raw)
		f.mixed = append(f.mixed, n <= g.max && g.end == '\n' && raw[n-1] == '\n' && (n > 1 && raw[n-2] == '\r') != g.hasCR)
	}
	return f
}

// recordEnd is where the record at start ends; ok is false when it is malformed.
func (r *reference) recordEnd(start int) (end int, ok bool) {
	const (
		cellStart = iota
		plain
		quoted
	)
	d, state := r.data, cellStart
	for i := start; ; i++ {
		if i-start > r.g.max {
			return 0, false
		}
		if i == len(d) {
			return i, state != quoted
		}
		c, next := d[i], byte(0)
		if i+1 < len(d) {
			next = d[i+1]
		}
		escape := r.g.escape != 0 && c == r.g.escape && (next == r.g.quote || next == r.g.delim || next == c)
		switch {
		case state == quoted && escape:
			i++
		case state == quoted && c != r.g.quote:
		case state == quoted && r.g.doubled && next == r.g.quote:
			i++
		case state == quoted && i+1 < len(d) && next == r.g.delim:
			state = cellStart
			i++
		case state == quoted:
			k := i + 1
			for r.g.end == '\n' && k < len(d) && d[k] == '\r' {
				k++
			}
			if k < len(d) && d[k] != r.g.end {
				return 0, false
			}
			k = min(k+1, len(d))
			return k, k-start <= r.g.max
		case c == r.g.end:
			return i + 1, i+1-start <= r.g.max
		case state == cellStart && c == r.g.quote:
			state = quoted
		case state == cellStart && r.g.skip && c == ' ':
		case escape:
			state = plain
			i++
		case c == r.g.delim:
			state = cellStart
		default:
			state = plain
		}
	}
}

func (r *reference) lineEnd(start int) int {
	for i := start; i < len(r.data); i++ {
		if r.data[i] == r.g.end {
			return i + 1
		}
	}
	return len(r.data)
}

func (r *reference) content(raw []byte) []byte {
	n := len(raw)
	if r.g.end == '\r' {
		if raw[n-1] == '\r' {
			n--
		}
		return raw[:n]
	}
	if raw[n-1] == '\n' {
		n--
	}
	for n > 0 && raw[n-1] == '\r' {
		n--
	}
	return raw[:n]
}

func (r *reference) row(raw []byte, ok bool, pos Position) refRow {
	row := refRow{Raw: string(raw[:min(len(raw), r.g.max)]), Row: pos.Row, Line: pos.Line, Offset: pos.Offset}
	if !ok {
		row.Code = CodeMalformedRow
		return row
	}
	content := r.content(raw)
	var stray bool
	row.Fields, stray = r.cells(content)
	nul := false
	for _, c := range content {
		nul = nul || c == 0
	}
	n := len(row.Fields)
	switch {
	case nul:
		row.Code = CodeMalformedRow
	case !utf8.Valid(content):
		row.Code = CodeInvalidEncoding
	case stray:
		row.Code = CodeMalformedRow
	case r.g.columns == 0 || n == r.g.columns:
	case n == r.g.columns+1 && row.Fields[n-1] == "":
		row.Fields, row.Trailing = row.Fields[:n-1], true
	default:
		row.Code = CodeWrongColumnCount
	}
	if r.g.columns > 0 && len(row.Fields) > r.g.columns+1 {
		row.Fields = row.Fields[:r.g.columns+1]
	}
	return row
}

// cells takes a well-formed record apart.
func (r *reference) cells(w []byte) (cells []string, stray bool) {
	for i := 0; ; i++ {
		for r.g.skip && i < len(w) && w[i] == ' ' {
			i++
		}
		var cell []byte
		inQuotes := i < len(w) && w[i] == r.g.quote
		if inQuotes {
			i++
		}
		for ; i < len(w); i++ {
			c, next := w[i], byte(0)
			if i+1 < len(w) {
				next = w[i+1]
			}
			if r.g.escape != 0 && c == r.g.escape && (next == r.g.quote || next == r.g.delim || next == c) {
				cell = append(cell, next)
				i++
				continue
			}
			if inQuotes && c == r.g.quote {
				if r.g.doubled && next == r.g.quote {
					cell = append(cell, c)
					i++
					continue
				}
				i++
				break
			}
			if !inQuotes && c == r.g.delim {
				break
			}
			stray = stray || !inQuotes && c == r.g.other
			cell = append(cell, c)
		}
		cells = append(cells, string(cell))
		if i >= len(w) {
			return cells, stray
		}
	}
}
