package netguard

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// target is a URL that keeps the rules of form, and where it leads.
type target struct {
	url  *url.URL   // normalised
	host string     // lower case, punycode, without final dot; text of addr when that is valid
	addr netip.Addr // of a literal address; never IPv4 inside IPv6
	port uint16
}

func malformed(message string) *refusal { return &refusal{ReasonUnresolvable, message} }

// parse holds a URL to the rules of form and normalises it: scheme and host in lower case, host in punycode or
// as a plain address, no default port, a path without dot segments, no fragment.
func parse(raw string) (target, *refusal) {
	if len(raw) > MaxURLBytes {
		return target{}, tooLong()
	}
	if !utf8.ValidString(raw) || strings.ContainsFunc(raw, unwritten) {
		return target{}, malformed("the URL has a space, a control character or a backslash; they must be percent-encoded")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, malformed("the URL is malformed")
	}
	if r := checkParts(u); r != nil {
		return target{}, r
	}
	port, r := portOf(u)
	if r != nil {
		return target{}, r
	}
	host, addr, r := canonicalHost(u.Hostname(), strings.HasPrefix(u.Host, "["))
	if r != nil {
		return target{}, r
	}
	clean := canonicalURL(u, hostport(u.Scheme, host, addr, port))
	if len(clean.String()) > MaxURLBytes {
		return target{}, tooLong()
	}
	return target{url: clean, host: host, addr: addr, port: port}, nil
}

func tooLong() *refusal {
	return &refusal{ReasonTooLong, "the URL is longer than " + strconv.Itoa(MaxURLBytes) + " bytes"}
}

// unwritten are characters that browsers, proxies and servers disagree about when they stand in a URL as they are.
func unwritten(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }

func checkParts(u *url.URL) *refusal {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &refusal{ReasonScheme, "the URL must begin with https:// or http://"}
	case u.User != nil:
		return &refusal{ReasonUserinfo, "the URL must not hold a user name or password"}
	case u.Opaque != "" || u.Hostname() == "":
		return malformed("the URL names no host")
	}
	return nil
}

// portOf gives the port of a URL, that of its scheme when it names none.
func portOf(u *url.URL) (uint16, *refusal) {
	text := u.Port()
	switch {
	case text == "" && u.Scheme == "http":
		return 80, nil
	case text == "":
		return 443, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, portNotAllowed()
	}
	return uint16(n), nil
}

func hostport(scheme, host string, addr netip.Addr, port uint16) string {
	text := strconv.Itoa(int(port))
	switch {
	case scheme == "http" && port != 80 || scheme == "https" && port != 443:
		return net.JoinHostPort(host, text)
	case addr.Is6():
		return "[" + host + "]"
	}
	return host
}

// canonicalURL puts the normalised parts together. Queries stay as they were written, but for characters
// outside ASCII: their meaning is the receiver's.
func canonicalURL(u *url.URL, host string) *url.URL {
	raw := u.RawPath
	if raw == "" {
		raw = u.EscapedPath()
	}
	path := removeDots(canonicalEscapes(raw)) // in this order: an escaped dot is a dot
	unescaped, err := url.PathUnescape(path)
	if err != nil { // url.Parse has read these escapes
		unescaped = path
	}
	return &url.URL{Scheme: u.Scheme, Host: host, Path: unescaped, RawPath: path, RawQuery: escapeNonASCII(u.RawQuery), ForceQuery: u.ForceQuery}
}

// canonicalEscapes writes a path in the one way of RFC 3986, 6.2.2: in upper case, and escaped where that is needed.
func canonicalEscapes(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) {
			if n, err := strconv.ParseUint(path[i+1:i+3], 16, 8); err == nil {
				c = byte(n)
			}
			i += 2
			writeEscaped(&b, c, unreserved)
			continue
		}
		writeEscaped(&b, c, unreserved+"/!$&'()*+,;=:@")
	}
	return b.String()
}

const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"

// writeEscaped writes a byte as it is when it may be so, and else as an escape.
func writeEscaped(b *strings.Builder, c byte, plain string) {
	if strings.IndexByte(plain, c) >= 0 {
		b.WriteByte(c)
		return
	}
	const hex = "0123456789ABCDEF"
	b.WriteByte('%')
	b.WriteByte(hex[c>>4])
	b.WriteByte(hex[c&15])
}

// removeDots takes "." and ".." segments out and keeps every other one, empty ones included.
func removeDots(path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var kept []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "." || s == "..":
			if s == ".." && len(kept) > 0 {
				kept = kept[:len(kept)-1]
			}
			if last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, s)
		}
	}
	return "/" + strings.Join(kept, "/")
}

func escapeNonASCII(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			writeEscaped(&b, c, "")
		}
	}
	return b.String()
}
