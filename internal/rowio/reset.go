package rowio

import "io"

// Reset has the Reader read other bytes of the same layout, as NewReader would. It
// takes no new buffers: they are larger than most rows that are read alone.
func (r *Reader) Reset(body io.Reader, at Position) {
	s := r.src
	if s.g.max == 0 {
		return // the layout was refused, and is still
	}
	fresh := source{g: s.g, r: body, buf: s.buf, window: s.window, base: at.Offset, quote: finder{c: s.g.quote}, marks: s.marks}
	if fresh.marks != nil {
		fresh.marks.reuse()
	}
	*s = fresh
	r.pos = at
}

// reuse is restart for the same buffer.
func (m *marks) reuse() {
	clear(m.high[:min(len(m.high), m.seen/64+1)])
	m.count, m.front, m.seen, m.nextHigh = 0, 0, 0, -1
	m.nul, m.other = finder{c: m.nul.c}, finder{c: m.other.c}
}
