package netguard

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// Whatever comes in: no panic, and what is admitted is a plain http or https URL that reads the same again.
func FuzzParse(f *testing.F) {
	for _, c := range checkList {
		for _, u := range c.urls {
			if len(u) < 300 {
				f.Add(u)
			}
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, r := parse(raw)
		if r != nil {
			return
		}
		s := got.url.String()
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" || len(s) > MaxURLBytes {
			t.Fatalf("%q became %q (%v)", raw, s, err)
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }) {
			t.Fatalf("%q became %q", raw, s)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); (err == nil) != got.addr.IsValid() || err == nil && (addr != got.addr || addr.Is4In6() || addr.Zone() != "") {
			t.Fatalf("%q leads to %v, written %q", raw, got.addr, s)
		}
		again, r := parse(s)
		if r != nil || again.url.String() != s || again.host != got.host || again.port != got.port {
			t.Fatalf("%q became %q and then %v (%v)", raw, s, again.url, r)
		}
	})
}
