package netguard

import (
	"net/netip"
	"testing"
)

// Addresses as resolvers and dialers give them: IPv4 inside IPv6, and with zones.
func TestJudgeAddress(t *testing.T) {
	for addr, want := range map[string]struct{ deployed, local string }{
		"8.8.8.8:443":                    {"", ""},
		"[::ffff:8.8.8.8]:443":           {"", ""},
		"[::ffff:10.0.0.1]:443":          {ReasonPrivateAddress, ReasonPrivateAddress},
		"[2606:4700:4700::1111]:80":      {"", ""},
		"[2606:4700:4700::1111%eth0]:80": {ReasonPrivateAddress, ReasonPrivateAddress},
		"8.8.8.8:8080":                   {ReasonPort, ReasonPort},
		"127.0.0.1:80":                   {ReasonPrivateAddress, ""},
		"[::ffff:127.0.0.1]:9":           {ReasonPort, ""},
		"[::1]:80":                       {ReasonPrivateAddress, ""},
		"[::1%lo]:80":                    {ReasonPrivateAddress, ReasonPrivateAddress},
	} {
		for _, c := range []struct {
			config Config
			want   string
		}{{Config{}, want.deployed}, {Config{AdmitLoopback: true}, want.local}} {
			g, err := New(c.config)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if r := g.judgeAddress(netip.MustParseAddrPort(addr)); r != nil {
				got = r.reason
			}
			if got != c.want {
				t.Errorf("%s with loopback admitted %v: %q, want %q", addr, c.config.AdmitLoopback, got, c.want)
			}
		}
	}
}

func TestNamesAreLookedUpAsTheyAre(t *testing.T) {
	for host, want := range map[string]string{"example.com": "example.com.", "8.8.8.8": "8.8.8.8", "::1": "::1", "localhost": "localhost", "a.localhost": "a.localhost"} {
		if got := absolute(host); got != want {
			t.Errorf("absolute(%s) = %s, want %s", host, got, want)
		}
	}
}
