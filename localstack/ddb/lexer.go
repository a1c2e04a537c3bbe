package ddb

import "strings"

// tokenKind tells the words of the expression language apart.
type tokenKind uint8

const (
	tokEOF     tokenKind = iota
	tokWord              // attribute name, function name or keyword
	tokName              // #placeholder
	tokValue             // :placeholder
	tokInteger           // list index; in PartiQL any unsigned number
	tokSymbol            // operator or punctuation
	tokString            // PartiQL only: 'text'
	tokQuoted            // PartiQL only: "attribute name"
	tokBad               // a character the language does not know
)

// token is src[start:end].
type token struct {
	kind       tokenKind
	start, end int
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) }

// lex cuts an expression into tokens and ends them with tokEOF.
func lex(src string, partiql bool) []token {
	toks := make([]token, 0, 4+len(src)/3)
	for i := 0; ; {
		for i < len(src) && strings.IndexByte(" \t\r\n", src[i]) >= 0 {
			i++
		}
		if i == len(src) {
			return append(toks, token{tokEOF, i, i})
		}
		t := next(src, i, partiql)
		toks = append(toks, t)
		i = t.end
	}
}

func next(src string, i int, partiql bool) token {
	c := src[i]
	switch {
	case isLetter(c):
		return token{tokWord, i, span(src, i+1, isWord)}
	case isDigit(c):
		return token{tokInteger, i, numberEnd(src, i, partiql)}
	case !partiql && (c == '#' || c == ':'):
		kind := tokName
		if c == ':' {
			kind = tokValue
		}
		end := span(src, i+1, isWord)
		if end == i+1 {
			kind = tokBad
		}
		return token{kind, i, end}
	case partiql && (c == '\'' || c == '"'):
		return quoted(src, i)
	case i+1 < len(src) && (src[i:i+2] == "<>" || src[i:i+2] == "<=" || src[i:i+2] == ">="):
		return token{tokSymbol, i, i + 2}
	case strings.IndexByte("=<>+-,.()[]", c) >= 0 || partiql && (c == '*' || c == '?'):
		return token{tokSymbol, i, i + 1}
	}
	return token{tokBad, i, i + 1}
}

func span(src string, i int, in func(byte) bool) int {
	for i < len(src) && in(src[i]) {
		i++
	}
	return i
}

// numberEnd takes a decimal fraction along in PartiQL only: elsewhere 1.5 is no number.
func numberEnd(src string, i int, partiql bool) int {
	end := span(src, i, isDigit)
	if partiql && end+1 < len(src) && src[end] == '.' && isDigit(src[end+1]) {
		end = span(src, end+1, isDigit)
	}
	return end
}

// quoted reads a PartiQL string or name; its quote is doubled inside.
func quoted(src string, start int) token {
	quote := src[start]
	for i := start + 1; i < len(src); i++ {
		if src[i] != quote {
			continue
		}
		if i+1 < len(src) && src[i+1] == quote {
			i++
			continue
		}
		kind := tokString
		if quote == '"' {
			kind = tokQuoted
		}
		return token{kind, start, i + 1}
	}
	return token{tokBad, start, len(src)}
}
