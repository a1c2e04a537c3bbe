package lambda

import (
	"bytes"
	"io"
	"sync"
)

// log is the one writer all functions print to, a line at a time.
type log struct {
	mu  sync.Mutex
	out io.Writer
}

// lines gives a writer that puts the name of a process before each line.
func (l *log) lines(name string) *lineWriter { return &lineWriter{log: l, prefix: name + " | "} }

// lineWriter keeps an unfinished line until its end comes.
type lineWriter struct {
	log    *log
	prefix string

	mu   sync.Mutex
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		w.log.print(w.prefix, w.rest[:i])
		w.rest = append(w.rest[:0], w.rest[i+1:]...)
	}
}

// flush prints a last line that had no end.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.log.print(w.prefix, w.rest)
		w.rest = nil
	}
}

func (l *log) print(prefix string, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Write(append(append([]byte(prefix), line...), '\n'))
}
