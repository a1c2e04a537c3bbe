package rowio

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// invalidEncoding describes a row whose byte at first is the first that is not
// UTF-8.
func invalidEncoding(w []byte, first int) *RowProblem {
	msg := fmt.Sprintf("invalid UTF-8 at byte %d of the row", first)
	if looksLikeWindows1252(w) {
		msg += "; looks like windows-1252"
	}
	return &RowProblem{CodeInvalidEncoding, msg}
}

// firstInvalid is the index of the first byte that is not UTF-8, or len(w). It is
// made for text that is ASCII but for a few characters.
func firstInvalid(w []byte) int {
	for i := 0; i < len(w); {
		if i+8 <= len(w) {
			high := binary.LittleEndian.Uint64(w[i:]) & highs
			if high == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(high) / 8
		}
		r, n := utf8.DecodeRune(w[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(w)
}

// looksLikeWindows1252: every byte over 0x7F is a character there, and none is
// the start of a UTF-8 sequence with a byte of its tail behind it, which would
// rather be damaged UTF-8.
func looksLikeWindows1252(w []byte) bool {
	for i, c := range w {
		switch c {
		case 0x81, 0x8D, 0x8F, 0x90, 0x9D:
			return false
		}
		if c >= 0xC2 && i+1 < len(w) && w[i+1]&0xC0 == 0x80 {
			return false
		}
	}
	return true
}
