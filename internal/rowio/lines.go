package rowio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

const (
	// namedLines is how many records are looked at for the names of their members.
	namedLines = 100
	// maxNames and maxNameBytes keep a Layout small: what is beyond them is not listed.
	maxNames     = 1000
	maxNameBytes = 32 << 10
)

// InspectLines is Inspect for JSON Lines. It refuses a file that is one JSON
// array, and what is no text; a broken line is one bad row and no reason to
// refuse the others.
func InspectLines(r io.Reader) (Layout, error) {
	head, err := io.ReadAll(io.LimitReader(r, headBytes+1))
	if err != nil {
		return Layout{}, fmt.Errorf("read head of file: %w", err)
	}
	whole := len(head) <= headBytes
	head = head[:min(len(head), headBytes)]
	if p := refuseBinary(head, "JSON Lines"); p != nil {
		return Layout{}, p
	}
	l := Layout{Format: FormatJSONL, RecordEnd: RecordEndLF, MaxRecordBytes: DefaultMaxRecordBytes, DataStart: Position{Line: 1, Row: 1}}
	if bytes.HasPrefix(head, bom) {
		l.BOMBytes = len(bom)
		l.DataStart.Offset = int64(len(bom))
		head = head[len(bom):]
	}
	text := bytes.TrimLeft(head, jsonBlanks)
	switch {
	case len(text) == 0 && whole:
		return Layout{}, &Problem{Code: CodeEmptyFile, Message: "the file is empty: it has no rows"}
	case len(text) > 0 && text[0] == '[':
		return Layout{}, &Problem{Code: CodeMalformedJSONL, Message: "JSON array, expected one object per line"}
	}
	if lf := bytes.IndexByte(head, '\n'); lf > 0 && head[lf-1] == '\r' {
		l.RecordEnd = RecordEndCRLF
	}
	l.Header, err = memberNames(head, l)
	return l, err
}

const jsonBlanks = " \t\r\n"

// memberNames lists the names that the objects of the first lines have. A line
// that is cut, or no object, has none.
func memberNames(head []byte, l Layout) ([]string, error) {
	l.MaxRecordBytes = max(1, min(l.MaxRecordBytes, len(head)))
	r := NewReader(bytes.NewReader(head), l, l.DataStart)
	found, size := map[string]bool{}, 0
	for range namedLines {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var members map[string]json.RawMessage
		if rec.Bad != nil || json.Unmarshal(rec.Fields[0], &members) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !found[name] && len(found) < maxNames && size+len(name) <= maxNameBytes {
				found[name] = true
				size += len(name)
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// nextLine finds the line at the front.
func (s *source) nextLine() (span, error) {
	sp, err := s.line(dataRow, sound)
	switch {
	case err != nil:
	case sp.lines == goesOn:
		sp.flaw = overlong
	case s.buf[s.lo] <= ' ' && len(bytes.TrimLeft(s.buf[s.lo:s.lo+sp.n], jsonBlanks)) == 0:
		sp.kind = blank
	}
	return sp, err
}

// readLine looks at the bytes of a line; what they mean is not for this package.
func (r *Reader) readLine(rec *Record) {
	content := r.src.g.content(rec.Raw)
	if bytes.IndexByte(content, 0) >= 0 {
		rec.Bad = &RowProblem{CodeMalformedRow, "NUL byte in the row"}
	} else if i := firstInvalid(content); i < len(content) {
		rec.Bad = invalidEncoding(content, i)
	} else {
		r.line[0] = content
		rec.Fields = r.line
	}
}

// rejectMembers are RejectColumns of a row.
type rejectMembers struct {
	Row     int64  `json:"_row_number"`
	Code    string `json:"_code"`
	Field   string `json:"_field"`
	Class   string `json:"_class"`
	Message string `json:"_message"`
}

// members begins a line with the added members and gives what is to follow of raw.
func (w *RejectWriter) members(r Reject, raw io.Reader) (io.Reader, error) {
	var added bytes.Buffer
	out := json.NewEncoder(&added)
	out.SetEscapeHTML(false)
	if err := out.Encode(rejectMembers{r.Row, r.Code, r.Field, r.Class, r.Message}); err != nil {
		return nil, fmt.Errorf("write rejected row %d: %w", r.Row, err)
	}
	w.line = append(w.line[:0], bytes.TrimSuffix(added.Bytes(), []byte("}\n"))...)
	rest := bufio.NewReader(raw)
	first, err := firstOf(rest)
	if err != nil {
		return nil, fmt.Errorf("read rejected row %d: %w", r.Row, err)
	}
	if first != '{' {
		w.line = append(w.line, "} "...)
		return rest, nil
	}
	_, _ = rest.Discard(1) // it is there
	if first, err = firstOf(rest); err != nil {
		return nil, fmt.Errorf("read rejected row %d: %w", r.Row, err)
	}
	if first != '}' {
		w.line = append(w.line, ',')
	}
	return rest, nil
}

// firstOf gives the first byte that is no blank, without taking it; 0: there is none.
func firstOf(r *bufio.Reader) (byte, error) {
	for {
		c, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, r.UnreadByte()
		}
	}
}
