package logline

import "testing"

// Reported: the line of a panicking worker held the row that it panicked over.
func TestPanicHoldsNoValue(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{"A7,rahasia", "panic: string"},
		{struct{ Row string }{"A7"}, "panic: struct { Row string }"},
		{overrun(), "panic: runtime error: index out of range [3] with length 2"},
	} {
		if got := Panic(c.value); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func overrun() (v any) {
	defer func() { v = recover() }()
	cells := []string{"a", "b"}
	return cells[len(cells)+1]
}
