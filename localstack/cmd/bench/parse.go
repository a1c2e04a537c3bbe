package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"pintu/internal/compute"
	"pintu/internal/dataset"
	"pintu/internal/rowio"
	"pintu/internal/rowio/rowgen"
)

// parseBytes is the size of the file that parsers are measured on.
const parseBytes = 320 << 20

// rounds is how often each is measured, in turn with the others; the best of each counts, since what
// disturbs a measurement only ever slows it down.
const rounds = 5

// ordersSchema fits the generated file, with the checks that a real dataset has.
const ordersSchema = `{"schema":{"primaryKey":["order_id"],"fields":[
 {"name":"order_id","type":"string","constraints":{"required":true}},{"name":"customer","type":"string"},{"name":"address","type":"string"},
 {"name":"date","type":"date"},{"name":"qty","type":"integer","constraints":{"minimum":1}},{"name":"price","type":"number"}]},
 "computed":[{"name":"total","type":"number","expression":"qty * price"}]}`

func (b *bench) parse() error {
	file, err := b.generate("orders.csv", parseBytes)
	if err != nil {
		return err
	}
	layout, binding, err := prepare(file)
	if err != nil {
		return err
	}
	contenders := []struct {
		name string
		run  func(io.Reader) (int64, error)
		best time.Duration
		rows int64
	}{
		{name: "encoding/csv, ReuseRecord", run: standard},
		{name: "boundary pass", run: func(r io.Reader) (int64, error) { return boundaries(r, layout) }},
		{name: "parser", run: func(r io.Reader) (int64, error) { return records(r, layout, nil) }},
		{name: "whole chain without the store, computed column", run: func(r io.Reader) (int64, error) { return records(r, layout, binding) }},
	}
	for range rounds {
		for i := range contenders {
			c := &contenders[i]
			took, rows, err := timed(file, layout.DataStart.Offset, c.run)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if c.best == 0 || took < c.best {
				c.best = took
			}
			c.rows = rows
		}
	}
	fmt.Printf("\nParsing %d MB, %d rows with quoted newlines: per second of processor time, best of %d\n", parseBytes>>20, contenders[0].rows, rounds)
	base := contenders[0]
	show(base.name, speed(base.best), "MB/s")
	bars := []float64{0, 6, 1.8, 0.5}
	for i, c := range contenders[1:] {
		if c.rows != base.rows {
			return fmt.Errorf("%s found %d rows, encoding/csv %d", c.name, c.rows, base.rows)
		}
		show(c.name, speed(c.best), "MB/s")
		b.atLeast(c.name+", ratio to encoding/csv", base.best.Seconds()/c.best.Seconds(), bars[i+1], "x")
	}
	return nil
}

func speed(d time.Duration) float64 { return float64(parseBytes) / 1e6 / d.Seconds() }

func (b *bench) generate(name string, size int64) (string, error) {
	path := filepath.Join(b.dir, name)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, err = rowgen.GenerateOrders(w, size, 1)
	return path, errors.Join(err, w.Flush(), f.Close())
}

func prepare(path string) (rowio.Layout, *dataset.Binding, error) {
	f, err := os.Open(path)
	if err != nil {
		return rowio.Layout{}, nil, err
	}
	defer f.Close()
	layout, _, err := rowio.Inspect(f, rowio.Dialect{})
	if err != nil {
		return layout, nil, err
	}
	def, err := dataset.Parse([]byte(ordersSchema))
	if err != nil {
		return layout, nil, err
	}
	schema, err := def.Compile()
	if err != nil {
		return layout, nil, err
	}
	computed, err := compute.Compile(def)
	if err != nil {
		return layout, nil, err
	}
	binding, _, err := schema.WithEvaluator(computed).Bind(layout.Header, layout.LooksLike)
	return layout, binding, err
}

// timed runs one contender over the data of the file, which is in the page cache after the first round. What
// counts is processor time of the whole process, garbage collection included: on a machine that others
// use too, time on the clock measures them.
func timed(path string, from int64, run func(io.Reader) (int64, error)) (time.Duration, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return 0, 0, err
	}
	runtime.GC() // the one before pays for its own garbage
	began := processorTime()
	rows, err := run(f)
	return processorTime() - began, rows, err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func standard(r io.Reader) (rows int64, err error) {
	c := csv.NewReader(bufio.NewReaderSize(r, 1<<20))
	c.ReuseRecord = true
	for {
		if _, err := c.Read(); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		rows++
	}
}

func boundaries(r io.Reader, l rowio.Layout) (rows int64, err error) {
	s := rowio.NewSplitter(r, l, l.DataStart, io.Discard)
	for {
		c, err := s.Next(8 << 20)
		if errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		rows += c.Rows
	}
}

// records reads every record with its fields, and checks it when there is a binding.
func records(r io.Reader, l rowio.Layout, b *dataset.Binding) (rows int64, err error) {
	reader := rowio.NewReader(r, l, l.DataStart)
	var row dataset.Row
	for {
		rec, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if rec.Bad != nil {
			return rows, fmt.Errorf("row %d: %s", rec.Row, rec.Bad.Message)
		}
		if b != nil {
			if v := b.Check(rec.Fields, &row); v != nil {
				return rows, fmt.Errorf("row %d: %s: %s", rec.Row, v.Field, v.Message)
			}
		}
		rows++
	}
}
