package netguard

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"code.dny.dev/ssrf"
)

// judgeAddress says whether an address may be dialled. IPv4 inside IPv6 is judged as the IPv4 it is; zones are
// refused, since no range contains an address that has one.
func (g *Guard) judgeAddress(to netip.AddrPort) *refusal {
	addr := to.Addr().Unmap()
	switch {
	case addr.Zone() != "":
		return privateAddress()
	case g.config.AdmitLoopback && addr.IsLoopback():
		return nil
	}
	network := "tcp6"
	if addr.Is4() {
		network = "tcp4"
	}
	err := g.special.Safe(network, netip.AddrPortFrom(addr, to.Port()).String(), nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ssrf.ErrProhibitedPort):
		return portNotAllowed()
	}
	return privateAddress()
}

func allowedPort(port uint16) bool { return slices.Contains(publicPorts, port) }

// localSuffixes are names that only mean something inside a network: by RFC 6761 and 6762, home.arpa by
// RFC 8375, and internal, which ICANN keeps for private use and the metadata services of clouds answer to.
var localSuffixes = []string{".localhost", ".local", ".internal", ".home.arpa"}

// localName tells whether a name is local by its form: no look-up can make it public.
func localName(host string) bool {
	return !strings.Contains(host, ".") || slices.ContainsFunc(localSuffixes, func(s string) bool { return strings.HasSuffix("."+host, s) })
}

func loopbackName(host string) bool { return strings.HasSuffix("."+host, ".localhost") }

// absolute adds the final dot to a name, so that no search list of the resolver is tried on it. Names of this
// machine stand in its hosts file, without one.
func absolute(host string) string {
	if _, err := netip.ParseAddr(host); err == nil || loopbackName(host) {
		return host
	}
	return host + "."
}
