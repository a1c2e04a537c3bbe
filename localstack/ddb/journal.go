package ddb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// journalName is the one file kept in Config.Dir.
const journalName = "dynamodb.log"

// entry is one line of the log. A line is replayed whole or not at all, so that a transaction is one entry.
type entry struct {
	Table   *definition  `json:",omitempty"` // made, or its definition replaced
	Drop    string       `json:",omitempty"` // table deleted
	Replace *contents    `json:",omitempty"` // a table's whole contents
	Writes  []entryWrite `json:",omitempty"`
	Token   *spentToken  `json:",omitempty"` // of the transaction that made Writes
}

// entryWrite puts an item, or deletes the one with a key.
type entryWrite struct {
	Table  string
	Put    item `json:",omitempty"`
	Delete item `json:",omitempty"`
}

// contents is a table at one moment; the log and snapshots share it.
type contents struct {
	Definition definition
	Items      []item
}

// journal is the append-only log of everything that was written. A nil journal keeps nothing.
type journal struct {
	mu   sync.Mutex
	file *os.File
	end  int64 // where the next line begins
	err  error // what broke the log: after a failed write that could not be undone nothing more is taken
}

// openJournal replays the log in dir into s, drops a torn last line, and rewrites the log when most of it is history.
func openJournal(dir string, s *Server) (*journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, journalName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	j := &journal{file: file}
	lines, err := j.replay(s)
	if err == nil && lines > 1000+2*s.liveItems() {
		err = j.compact(path, s)
	}
	if err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

// replay applies every whole line and cuts off what follows the last one. It returns the number of writes read.
func (j *journal) replay(s *Server) (writes int, err error) {
	r := bufio.NewReaderSize(j.file, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return writes, fmt.Errorf("read log: %w", err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			if _, after := r.Peek(1); after == io.EOF {
				break
			}
			return writes, fmt.Errorf("log damaged at byte %d: %w", j.end, err)
		}
		if err := s.replayEntry(e); err != nil {
			return writes, fmt.Errorf("replay log at byte %d: %w", j.end, err)
		}
		writes += 1 + len(e.Writes)
		j.end += int64(len(line))
	}
	if err := j.file.Truncate(j.end); err != nil {
		return writes, fmt.Errorf("drop torn line: %w", err)
	}
	return writes, nil
}

func (s *Server) replayEntry(e entry) error {
	if e.Table != nil {
		if t := s.tables[e.Table.Name]; t != nil {
			t.setDefinition(*e.Table)
		} else {
			s.tables[e.Table.Name] = newTable(*e.Table)
		}
	}
	if e.Replace != nil {
		s.tables[e.Replace.Definition.Name] = e.Replace.table()
	}
	delete(s.tables, e.Drop)
	for _, w := range e.Writes {
		t := s.tables[w.Table]
		if t == nil {
			return fmt.Errorf("write to unknown table %s", w.Table)
		}
		t.replayWrite(w)
	}
	if e.Token != nil {
		s.tokens.restore(*e.Token)
	}
	return nil
}

func (t *table) replayWrite(w entryWrite) {
	c := change{t: t}
	if w.Put != nil {
		c.key, c.new, c.newSize = t.schema.encode(w.Put), w.Put, itemSize(w.Put)
	} else {
		c.key = t.schema.encode(w.Delete)
	}
	if old, ok := t.rows.get(c.key); ok {
		c.old, c.oldSize = old.item, old.size
	}
	c.apply()
}

func (s *Server) liveItems() int {
	n := 0
	for _, t := range s.tables {
		n += t.rows.len()
	}
	return n
}

// compact writes the present state to a new file and puts it in the place of the old one. Spent tokens go along.
func (j *journal) compact(path string, s *Server) error {
	fresh, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(fresh, 1<<20)
	for _, e := range s.state() {
		if err := json.NewEncoder(w).Encode(e); err != nil {
			return errors.Join(fmt.Errorf("compact log: %w", err), fresh.Close())
		}
	}
	if err := w.Flush(); err != nil {
		return errors.Join(fmt.Errorf("compact log: %w", err), fresh.Close())
	}
	if err := os.Rename(path+".new", path); err != nil {
		return errors.Join(err, fresh.Close())
	}
	old := j.file
	j.file = fresh
	if j.end, err = fresh.Seek(0, io.SeekEnd); err != nil {
		return errors.Join(err, old.Close())
	}
	return old.Close()
}

// state is the least sequence of entries that makes the present tables and tokens.
func (s *Server) state() []entry {
	var entries []entry
	for _, name := range sortedKeys(s.tables) {
		entries = append(entries, entry{Table: &s.tables[name].def})
		for n := s.tables[name].rows.firstFrom(""); n != nil; n = n.next[0] {
			entries = append(entries, entry{Writes: []entryWrite{{Table: name, Put: n.item}}})
		}
	}
	for _, t := range s.tokens.spent() {
		entries = append(entries, entry{Token: &t})
	}
	return entries
}

// append adds one line, unless e says nothing. It returns only when the line is with the operating system.
func (j *journal) append(e entry) error {
	if j == nil || e.empty() {
		return nil
	}
	line, err := e.line()
	if err != nil {
		return fmt.Errorf("encode log line: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if _, err := j.file.WriteAt(line, j.end); err != nil {
		err = fmt.Errorf("write log: %w", err)
		if undo := j.file.Truncate(j.end); undo != nil {
			j.err = errors.Join(err, undo)
		}
		return err
	}
	j.end += int64(len(line))
	return nil
}

func (e entry) empty() bool {
	return e.Table == nil && e.Drop == "" && e.Replace == nil && len(e.Writes) == 0 && e.Token == nil
}

// line encodes e. Plain writes, nearly all there is, are appended by hand: encoding/json would scan each item twice more.
func (e entry) line() ([]byte, error) {
	if len(e.Writes) == 0 || e.Table != nil || e.Replace != nil || e.Drop != "" {
		b, err := json.Marshal(e)
		return append(b, '\n'), err
	}
	r := newReply()
	r.key("Writes")
	r.b = append(r.b, '[')
	for i, w := range e.Writes {
		if i > 0 {
			r.b = append(r.b, ',')
		}
		one := reply{b: append(r.b, '{'), first: true}
		one.text("Table", w.Table)
		if w.Put != nil {
			one.item("Put", w.Put)
		} else {
			one.item("Delete", w.Delete)
		}
		r.b = append(one.b, '}')
	}
	r.b = append(r.b, ']')
	if e.Token != nil {
		if err := r.json("Token", e.Token); err != nil {
			return nil, err
		}
	}
	line := append(r.done(), '\n')
	if bytes.IndexByte(line[:len(line)-1], '\n') >= 0 {
		return nil, errors.New("line break inside a log line")
	}
	return line, nil
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = errors.New("write log: closed")
	}
	return j.file.Close()
}
