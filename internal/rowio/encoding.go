package rowio

import (
	"fmt"
	"unicode/utf8"
)

// invalidEncoding describes the first byte of a row that is not UTF-8.
func invalidEncoding(w []byte) *RowProblem {
	msg := fmt.Sprintf("invalid UTF-8 at byte %d of the row", firstInvalid(w))
	if looksLikeWindows1252(w) {
		msg += "; looks like windows-1252"
	}
	return &RowProblem{CodeInvalidEncoding, msg}
}

// firstInvalid is the index of the first byte that is not UTF-8, or len(w).
func firstInvalid(w []byte) int {
	for i := 0; i < len(w); {
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
