// Package logline writes one line of JSON for each unit of work (a request, a message, a sweep), with
// everything that was learned about it on the way. It refuses to write more than that line, and to let
// tokens or signed URLs through; that no row value is added is the caller's duty.
package logline

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"pintu/internal/fault"
)

// Logger makes lines.
type Logger struct {
	out *slog.Logger
	now func() time.Time
}

// New makes a logger that writes to w, one JSON object a line.
func New(w io.Writer, now func() time.Time) *Logger {
	return &Logger{out: slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: scrubAttr})), now: now}
}

// Slog gives the logger behind the lines, for a unit of work that writes its line by itself.
func (l *Logger) Slog() *slog.Logger { return l.out }

// Line collects what is learned about one unit of work. It may be added to from several goroutines.
type Line struct {
	logger  *Logger
	unit    string
	started time.Time

	mu    sync.Mutex
	attrs []slog.Attr
}

type contextKey struct{}

// Begin starts the line of a unit of work and puts it into the context for Add.
func (l *Logger) Begin(ctx context.Context, unit string, attrs ...slog.Attr) (context.Context, *Line) {
	line := &Line{logger: l, unit: unit, started: l.now()}
	line.Add(attrs...)
	return context.WithValue(ctx, contextKey{}, line), line
}

// Add puts attributes on the line of the work that ctx belongs to. Outside of such work it does nothing.
func Add(ctx context.Context, attrs ...slog.Attr) {
	if line, ok := ctx.Value(contextKey{}).(*Line); ok {
		line.Add(attrs...)
	}
}

// Add puts attributes on the line. A key that is there already gets the new value.
func (l *Line) Add(attrs ...slog.Attr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range attrs {
		l.set(a)
	}
}

func (l *Line) set(a slog.Attr) {
	for i := range l.attrs {
		if l.attrs[i].Key == a.Key {
			l.attrs[i].Value = a.Value
			return
		}
	}
	l.attrs = append(l.attrs, a)
}

// End writes the line, with the time since Begin, and with the error and its code when there is one.
func (l *Line) End(err error) {
	l.Add(slog.Int64("duration_ms", l.logger.now().Sub(l.started).Milliseconds()))
	if err != nil {
		l.Add(slog.String("error", err.Error()))
	}
	if f, ok := fault.As(err); ok {
		l.Add(slog.String("code", string(f.Code)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Written even when the work's context is over: that is when the line is wanted most.
	l.logger.out.LogAttrs(context.Background(), level(err), l.unit, l.attrs...)
}

// level is ERROR for what an operator must look at, WARN for what a caller or a retry mends.
func level(err error) slog.Level {
	f, known := fault.As(err)
	switch {
	case err == nil:
		return slog.LevelInfo
	case known && f.Code != fault.Internal:
		return slog.LevelWarn
	}
	return slog.LevelError
}
