package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pintu/internal/client"
)

const apiPageSize = 1000

// listing is what list commands share: where to start, how many entries to show.
type listing struct {
	limit  int
	cursor string
}

func listFlags(cmd *cobra.Command) *listing {
	l := &listing{}
	cmd.Flags().IntVar(&l.limit, "limit", 100, "entries to show at most; 0: all")
	cmd.Flags().StringVar(&l.cursor, "cursor", "", "go on where an earlier list ended")
	return l
}

// table says how entries look as text: a head, and the cells of one entry.
type table[T any] struct {
	head  []string
	cells func(T) []any
	raw   func(T) json.RawMessage
}

// show reads page after page and writes entries as they come. JSON is one object as the API would give it,
// {"<plural>":[…],"next_cursor":…}. That there is more is told on stderr.
func show[T any](ctx context.Context, cmd *cobra.Command, l listing, f format, plural string, t table[T],
	fetch func(ctx context.Context, cursor string, limit int) (client.Page[T], error)) error {
	if l.limit < 0 {
		return usage(cmd, "--limit cannot be negative")
	}
	var out writer[T] = newTextWriter(cmd.OutOrStdout(), t)
	if f == asJSON {
		out = &jsonWriter[T]{w: cmd.OutOrStdout(), plural: plural, raw: t.raw}
	}
	next, err := pages(ctx, l, fetch, out.entry)
	if err != nil {
		return calling(err)
	}
	if next != "" && f == asText {
		fmt.Fprintf(cmd.ErrOrStderr(), "there is more\nhint: --limit 0 shows everything, --cursor %s goes on from here\n", next)
	}
	return out.end(next)
}

// pages calls entry for each entry up to the limit and gives the cursor of what is left.
func pages[T any](ctx context.Context, l listing, fetch func(context.Context, string, int) (client.Page[T], error), entry func(T) error) (next string, err error) {
	next = l.cursor
	for left := l.limit; ; {
		size := apiPageSize
		if l.limit > 0 {
			size = min(left, apiPageSize)
		}
		page, err := fetch(ctx, next, size)
		if err != nil {
			return "", err
		}
		for _, e := range page.Entries {
			if err := entry(e); err != nil {
				return "", err
			}
		}
		next, left = page.NextCursor, left-len(page.Entries)
		if next == "" || l.limit > 0 && left <= 0 {
			return next, nil
		}
	}
}

type writer[T any] interface {
	entry(T) error
	end(next string) error
}

type textWriter[T any] struct {
	w     *tabwriter.Writer
	table table[T]
	n     int
}

// flushEvery bounds how many entries wait for their columns to be laid out.
const flushEvery = 1000

func newTextWriter[T any](w io.Writer, t table[T]) *textWriter[T] {
	return &textWriter[T]{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0), table: t}
}

func (t *textWriter[T]) entry(e T) error {
	if t.n == 0 {
		fmt.Fprintln(t.w, strings.Join(t.table.head, "\t"))
	}
	var cells []string
	for _, cell := range t.table.cells(e) {
		cells = append(cells, oneLine(fmt.Sprint(cell)))
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
	if t.n++; t.n%flushEvery == 0 {
		return t.w.Flush()
	}
	return nil
}

func (t *textWriter[T]) end(string) error { return t.w.Flush() }

// oneLine keeps what would break a table, or drive a terminal, out of a cell.
func oneLine(s string) string {
	out := []rune(s)
	for i, r := range out {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			out[i] = ' '
		}
	}
	return string(out)
}

type jsonWriter[T any] struct {
	w      io.Writer
	plural string
	raw    func(T) json.RawMessage
	n      int
}

func (j *jsonWriter[T]) entry(e T) error {
	before := ","
	if j.n == 0 {
		before = fmt.Sprintf(`{%q:[`, j.plural)
	}
	j.n++
	_, err := fmt.Fprintf(j.w, "%s%s", before, j.raw(e))
	return err
}

func (j *jsonWriter[T]) end(next string) error {
	if j.n == 0 {
		fmt.Fprintf(j.w, `{%q:[`, j.plural)
	}
	cursor := []byte("null")
	if next != "" {
		cursor, _ = json.Marshal(next) // a string always has a JSON form
	}
	_, err := fmt.Fprintf(j.w, "],\"next_cursor\":%s}\n", cursor)
	return err
}
