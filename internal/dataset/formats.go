package dataset

import "bytes"

// stringFormats judge a text; they never change it. The default format takes any text.
var stringFormats = map[string]func([]byte) bool{"email": validEmail, "uri": validURI, "uuid": validUUID}

// validEmail takes what can be delivered to: one @, a local part of visible characters up to 64
// bytes, a domain of dotted labels. It does not try the quoted forms of RFC 5322.
func validEmail(text []byte) bool {
	at := bytes.IndexByte(text, '@')
	if at < 1 || at > 64 || len(text) > 254 {
		return false
	}
	local, domain := text[:at], text[at+1:]
	if local[0] == '.' || local[at-1] == '.' || bytes.Contains(local, []byte("..")) {
		return false
	}
	for _, c := range local {
		if c <= ' ' || c == 0x7f || bytes.IndexByte([]byte(`"(),:;<>[\]@`), c) >= 0 {
			return false
		}
	}
	return validDomain(domain)
}

func validDomain(domain []byte) bool {
	labels := 0
	for more := true; more; labels++ {
		var label []byte
		label, domain, more = bytes.Cut(domain, []byte{'.'})
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range label {
			if !isAlphanumeric(c) && c != '-' && c < 0x80 {
				return false
			}
		}
	}
	return labels > 1
}

// validURI takes an absolute URI as RFC 3986 spells it: a scheme, a colon, and more, with no
// character that must be escaped.
func validURI(text []byte) bool {
	scheme, rest, found := bytes.Cut(text, []byte{':'})
	if !found || len(scheme) == 0 || len(rest) == 0 || !isLetter(scheme[0]) {
		return false
	}
	for _, c := range scheme {
		if !isAlphanumeric(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	for i, c := range rest {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte("\"<>\\^`{|}"), c) >= 0 {
			return false
		}
		if c == '%' && (i+2 >= len(rest) || !isHex(rest[i+1]) || !isHex(rest[i+2])) {
			return false
		}
	}
	return true
}

// validUUID takes 8-4-4-4-12 hexadecimal digits in either case.
func validUUID(text []byte) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool { return isLetter(c) || isDigit(c) }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
