package netguard

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// profile reads host names as browsers do: case, width and compatibility forms are folded, the rest becomes
// punycode. Which characters may stand in a name is checked on the result (checkName).
var profile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckHyphens(false), idna.StrictDomainName(false),
	idna.Transitional(false))

// canonicalHost gives the one way to write a host: an address in its plain form, whatever form it came in, or a
// name in lower-case punycode without its final dot.
func canonicalHost(host string, bracketed bool) (string, netip.Addr, *refusal) {
	if bracketed {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", netip.Addr{}, malformed("the address in brackets is not an IPv6 address without zone")
		}
		addr = addr.Unmap()
		return addr.String(), addr, nil
	}
	name, err := profile.ToASCII(host)
	if err != nil || !utf8.ValidString(host) { // it may have been percent-encoded
		return "", netip.Addr{}, malformed("the host of the URL is not a valid name")
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if endsInNumber(name) {
		addr, ok := legacyIPv4(name)
		if !ok {
			return "", netip.Addr{}, malformed("the host of the URL is neither a name nor an IPv4 address")
		}
		return addr.String(), addr, nil
	}
	if !checkName(name) {
		return "", netip.Addr{}, malformed("the host of the URL is not a valid name")
	}
	return name, netip.Addr{}, nil
}

// checkName holds a name to the lengths of DNS and to letters, digits, hyphens within and underscores.
func checkName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, nameCharacters) != "" {
			return false
		}
	}
	return true
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// endsInNumber tells, by the rule of the WHATWG URL standard, whether a host can only be an IPv4 address.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	hex, isHex := strings.CutPrefix(last, "0x")
	return last != "" && strings.Trim(last, "0123456789") == "" || isHex && strings.Trim(hex, hexDigits) == ""
}

const hexDigits = "0123456789abcdef"

// legacyIPv4 reads the forms that the C library and browsers take for an IPv4 address: one to four parts, each
// decimal, octal (0…) or hexadecimal (0x…), the last filling all bytes that are left.
func legacyIPv4(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, ok := legacyNumber(part)
		bytes := 1
		if i == len(parts)-1 {
			bytes = 5 - len(parts)
		}
		if !ok || n >= 1<<(8*bytes) {
			return netip.Addr{}, false
		}
		value = value<<(8*bytes) | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func legacyNumber(s string) (uint64, bool) {
	base := 10
	switch {
	case s == "0x":
		return 0, true
	case strings.HasPrefix(s, "0x"):
		s, base = s[2:], 16
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	if strings.Trim(s, hexDigits) != "" {
		return 0, false // ParseUint would take a sign
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}
