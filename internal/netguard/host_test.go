package netguard

import (
	"strings"
	"testing"
)

// Names that no name server needs to be asked for.
func TestHostsWithoutFormAreRefusedUnasked(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 62)+".", 4)
	for _, host := range []string{"", ".", "-a.com", "a-.com", "a..com", ".a.com", "a.com..", strings.Repeat("a", 64) + ".com", long + "ab", "a b.com", "a:b.com", "1.2.3.4.5"} {
		if got, _, r := canonicalHost(host, false); r == nil {
			t.Errorf("%q became %q", host, got)
		}
	}
	for _, host := range []string{strings.Repeat("a", 63) + ".com", long + "a", "a--b.com", "r3---sn.example.com", "_dmarc.example.com", "1.example.com", "0x.com"} {
		if got, _, r := canonicalHost(host, false); r != nil || got != host {
			t.Errorf("%q became %q (%v)", host, got, r)
		}
	}
}
