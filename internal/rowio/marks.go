package rowio

import (
	"encoding/binary"
	"math/bits"
)

// marks are found for the bytes of a source as they are read, 64 at a time, so
// that a row can be taken apart without searching for each delimiter: searches
// over a few bytes cost more in wrongly guessed branches than in bytes.
type marks struct {
	delim    byte
	delims   []uint32 // indexes of all delimiters in the buffer, quoted or not
	count    int      // how many are valid
	front    int      // how many lie before the record at the front, as far as known
	high     []bool   // per 64 bytes of the buffer: holds a byte over 0x7F
	seen     int      // how much of the buffer was looked at
	nextHigh int      // no block between the one last asked for and this one is high
	nul      finder
	other    finder // of the line byte that ends no record
}

const (
	ones  = 0x0101010101010101
	lows  = 0x7F * ones
	highs = 0x80 * ones
	// filler stands behind the last bytes; a letter is no delimiter.
	filler = 'x'
)

// restart is for a new, empty buffer.
func (m *marks) restart(buf []byte) {
	m.high = make([]bool, len(buf)/64+1)
	m.count, m.front, m.seen, m.nextHigh = 0, 0, 0, -1
}

// moved says that the buffer has lost its first n bytes and holds held now.
func (m *marks) moved(n int, held []byte) {
	clear(m.high)
	m.count, m.front, m.nextHigh = 0, 0, -1
	m.add(held, 0, len(held))
	m.nul.moved(n)
	m.other.moved(n)
}

// add looks at buf[from:to], which follows what was added before.
func (m *marks) add(buf []byte, from, to int) {
	m.seen = to
	if from%64 != 0 {
		border := min(to, from+64-from%64)
		m.part(buf[from:border], from)
		from = border
	}
	whole := to - (to-from)%64
	m.blocks(buf[from:whole], from)
	m.part(buf[whole:to], whole)
}

// part marks fewer than 64 bytes.
func (m *marks) part(w []byte, from int) {
	if len(w) == 0 {
		return
	}
	var b [64]byte
	for i := copy(b[:], w); i < len(b); i++ {
		b[i] = filler
	}
	m.blocks(b[:], from)
}

// blocks marks a multiple of 64 bytes that lie at index from of the buffer, and
// cross no border of the blocks of high there.
func (m *marks) blocks(w []byte, from int) {
	delim := uint64(m.delim) * ones
	delims, n := m.delims, m.count
	for ; len(w) >= 64; w = w[64:] {
		x0, x1 := binary.LittleEndian.Uint64(w[0:]), binary.LittleEndian.Uint64(w[8:])
		x2, x3 := binary.LittleEndian.Uint64(w[16:]), binary.LittleEndian.Uint64(w[24:])
		x4, x5 := binary.LittleEndian.Uint64(w[32:]), binary.LittleEndian.Uint64(w[40:])
		x6, x7 := binary.LittleEndian.Uint64(w[48:]), binary.LittleEndian.Uint64(w[56:])
		if (x0|x1|x2|x3|x4|x5|x6|x7)&highs != 0 {
			m.high[from/64] = true
		}
		differ := unequal(x0, delim)>>7 | unequal(x1, delim)>>6 | unequal(x2, delim)>>5 | unequal(x3, delim)>>4 |
			unequal(x4, delim)>>3 | unequal(x5, delim)>>2 | unequal(x6, delim)>>1 | unequal(x7, delim)
		if n+64 > len(delims) {
			delims = append(delims, make([]uint32, len(delims)+1024)...)
		}
		found := ^transpose(differ)
		list((*[64]uint32)(delims[n:]), found, uint32(from))
		n += bits.OnesCount64(found)
		from += 64
	}
	m.delims, m.count = delims, n
}

// unequal has the high bit of each byte set where x differs from c, an ASCII
// character repeated.
func unequal(x, c uint64) uint64 {
	return (((x&lows ^ c) + lows) | x) & highs
}

// transpose exchanges rows and columns of a square of 8 by 8 bits: bit k of byte
// i becomes bit i of byte k.
func transpose(x uint64) uint64 {
	t := (x ^ x>>7) & 0x00AA00AA00AA00AA
	x ^= t ^ t<<7
	t = (x ^ x>>14) & 0x0000CCCC0000CCCC
	x ^= t ^ t<<14
	t = (x ^ x>>28) & 0x00000000F0F0F0F0
	return x ^ t ^ t<<28
}

// list writes the places of the bits of found. Six are written whether they are
// there or not, which is cheaper than a loop whose end is guessed wrong.
func list(at *[64]uint32, found uint64, from uint32) {
	at[0] = from + uint32(bits.TrailingZeros64(found))
	found &= found - 1
	at[1] = from + uint32(bits.TrailingZeros64(found))
	found &= found - 1
	at[2] = from + uint32(bits.TrailingZeros64(found))
	found &= found - 1
	at[3] = from + uint32(bits.TrailingZeros64(found))
	found &= found - 1
	at[4] = from + uint32(bits.TrailingZeros64(found))
	found &= found - 1
	at[5] = from + uint32(bits.TrailingZeros64(found))
	found &= found - 1
	for i := 6; found != 0; i++ {
		at[i&63] = from + uint32(bits.TrailingZeros64(found))
		found &= found - 1
	}
}

// ascii is how many of the first bytes of buf[from:to] are known to be ASCII. It
// is asked for rising places.
func (m *marks) ascii(from, to int) int {
	if m.nextHigh < from/64 {
		m.findHigh(from / 64)
	}
	return min(max(m.nextHigh*64, from), to) - from
}

// findHigh looks for a block with such a byte, up to the last block looked at:
// that one may still grow.
func (m *marks) findHigh(block int) {
	for block < m.seen/64 && !m.high[block] {
		block++
	}
	m.nextHigh = block
}
