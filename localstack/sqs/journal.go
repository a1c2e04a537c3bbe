package sqs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// The journal is one line for each change: the CRC-32 of the record in eight hex digits, a space, the record as JSON.
// A record holds the whole new state of a queue, a message or a move task, so the last one wins and reading it back
// knows nothing of what the operations mean. A write reaches the operating system before the call is answered; it is
// not synced to the disk, so a crash of the process loses nothing and a crash of the machine may lose the end.
type record struct {
	Queue   string       `json:"queue,omitempty"`
	Set     *queueRecord `json:"set,omitempty"`     // the queue was made or changed
	Deleted bool         `json:"deleted,omitempty"` // the queue is gone
	Message *message     `json:"message,omitempty"` // the message was put in or changed
	Removed string       `json:"removed,omitempty"` // the message with this id is gone
	Task    *moveTask    `json:"task,omitempty"`
}

type queueRecord struct {
	Attrs    map[string]string `json:"attrs"`
	Tags     map[string]string `json:"tags,omitempty"`
	Created  time.Time         `json:"created"`
	Modified time.Time         `json:"modified"`
	Purged   time.Time         `json:"purged,omitzero"`
}

// journal appends records to a file; those of one call are written together.
type journal struct {
	file    *os.File
	pending bytes.Buffer
}

func (j *journal) flush() error {
	if j.pending.Len() == 0 {
		return nil
	}
	_, err := j.file.Write(j.pending.Bytes())
	j.pending.Reset()
	if err != nil {
		return fmt.Errorf("write sqs journal: %w", err)
	}
	return nil
}

func (j *journal) close() error { return j.file.Close() }

func (s *Server) save(r record) {
	if s.journal != nil {
		appendRecord(&s.journal.pending, r)
	}
}

func (s *Server) saveQueue(q *queue) {
	s.save(record{Queue: q.name, Set: &queueRecord{q.attrs, q.tags, q.created, q.modified, q.purged}})
}
func (s *Server) dropQueue(q *queue)               { s.save(record{Queue: q.name, Deleted: true}) }
func (s *Server) saveMessage(q *queue, m *message) { s.save(record{Queue: q.name, Message: m}) }
func (s *Server) dropMessage(q *queue, id string)  { s.save(record{Queue: q.name, Removed: id}) }
func (s *Server) saveTask(t *moveTask)             { s.save(record{Task: t}) }

func appendRecord(b *bytes.Buffer, r record) {
	line, err := json.Marshal(r)
	if err != nil { // strings, numbers and times
		panic(err)
	}
	fmt.Fprintf(b, "%08x %s\n", crc32.ChecksumIEEE(line), line)
}

// openJournal reads the state back, writes it anew without its history, and goes on appending to that.
func (s *Server) openJournal() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(s.cfg.Dir, "sqs.journal")
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	records, err := parseJournal(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := s.replay(records); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var compact bytes.Buffer
	for _, r := range s.snapshot() {
		appendRecord(&compact, r)
	}
	file, err := replaceFile(path, compact.Bytes())
	if err != nil {
		return err
	}
	s.journal = &journal{file: file}
	return nil
}

// parseJournal reads records. What follows the last whole line is a write that was cut off and is dropped, as is a
// damaged last line; damage before that is an error.
func parseJournal(data []byte) ([]record, error) {
	var records []record
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			return records, nil
		}
		r, err := parseRecord(line)
		if err != nil && len(rest) == 0 {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		records = append(records, r)
		data = rest
	}
}

func parseRecord(line []byte) (record, error) {
	var r record
	sum, body, _ := bytes.Cut(line, []byte{' '})
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if err != nil || uint32(want) != crc32.ChecksumIEEE(body) {
		return r, fmt.Errorf("checksum does not match")
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("read record: %w", err)
	}
	return r, nil
}

// replay rebuilds the state: first the last record of everything, then the queues.
func (s *Server) replay(records []record) error {
	messages := map[string]map[string]*message{}
	for _, r := range records {
		switch {
		case r.Task != nil:
			s.restoreTask(r.Task)
		case r.Set != nil:
			if err := s.restoreQueue(r.Queue, r.Set); err != nil {
				return err
			}
			if messages[r.Queue] == nil {
				messages[r.Queue] = map[string]*message{}
			}
		case r.Deleted:
			delete(s.queues, r.Queue)
			delete(messages, r.Queue)
		case messages[r.Queue] == nil:
			return fmt.Errorf("message in queue %q, which does not exist", r.Queue)
		case r.Message != nil:
			messages[r.Queue][r.Message.ID] = r.Message
		default:
			delete(messages[r.Queue], r.Removed)
		}
	}
	now := s.now()
	for name, q := range s.queues {
		for _, m := range slices.SortedFunc(maps.Values(messages[name]), bySeq) {
			q.add(m, now)
		}
	}
	return nil
}

func (s *Server) restoreQueue(name string, r *queueRecord) error {
	set, err := parseSettings(r.Attrs)
	if err != nil {
		return fmt.Errorf("queue %q: %w", name, err)
	}
	q := newQueue(name, s.arn(name))
	q.attrs, q.set, q.created, q.modified, q.purged = r.Attrs, set, r.Created, r.Modified, r.Purged
	maps.Copy(q.tags, r.Tags)
	s.queues[name] = q
	return nil
}

func (s *Server) restoreTask(t *moveTask) {
	i := slices.IndexFunc(s.tasks, func(other *moveTask) bool { return other.Handle == t.Handle })
	if i < 0 {
		s.tasks = append(s.tasks, t)
		return
	}
	s.tasks[i] = t
}

// snapshot is the shortest journal of the present state.
func (s *Server) snapshot() []record {
	var out []record
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		q := s.queues[name]
		out = append(out, record{Queue: name, Set: &queueRecord{q.attrs, q.tags, q.created, q.modified, q.purged}})
		for _, m := range slices.SortedFunc(maps.Values(q.msgs), bySeq) {
			out = append(out, record{Queue: name, Message: m})
		}
	}
	for _, t := range s.tasks {
		out = append(out, record{Task: t})
	}
	return out
}

// replaceFile puts new content in place of a file in one step, and leaves it open for appending.
func replaceFile(path string, content []byte) (*os.File, error) {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("compact journal: %w", err)
	}
	return file, nil
}
