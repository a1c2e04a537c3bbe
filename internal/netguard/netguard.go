// Package netguard is the HTTP client for every URL that a client of ours gives us: callbacks, pages, and
// whatever those lead to. It refuses everything that is not a public http or https address, judged on the
// address that is really dialled, so that no name, redirect or changed DNS answer reaches a private network.
// It follows no proxy, keeps no connection, and knows nothing of jobs or deliveries.
package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"time"

	"code.dny.dev/ssrf"

	"pintu/internal/fault"
)

// Codes of refusals (SPEC 3.1). Which of the first two is used says the Policy; the third is for names on a list.
const (
	InvalidSourceURL      fault.Code = "INVALID_SOURCE_URL"
	CallbackURLNotAllowed fault.Code = "CALLBACK_URL_NOT_ALLOWED"
	DomainBlocked         fault.Code = "DOMAIN_BLOCKED"
)

// Reasons of refusals: details.reason (SPEC 3.1).
const (
	ReasonPrivateAddress = "private_address_blocked"
	ReasonPort           = "port_not_allowed"
	ReasonScheme         = "scheme_not_allowed"
	ReasonUserinfo       = "userinfo_not_allowed"
	ReasonTooLong        = "too_long"
	ReasonUnresolvable   = "unresolvable" // malformed, or a name without an address: no host can be found from it
	ReasonDenied         = "denylist"
	ReasonNotAllowed     = "not_in_allowlist"
)

// MaxURLBytes is how long a URL may be, as given and as normalised.
const MaxURLBytes = 2048

// lookupTimeout bounds the one resolution of a Check: somebody waits for the answer.
const lookupTimeout = 3 * time.Second

// publicPorts are the ports that may be dialled.
var publicPorts = []uint16{80, 443}

// alsoDenied are addresses that are public by the registries and lead inside all the same.
var alsoDenied = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host services
}

// Config is what all tenants share.
type Config struct {
	// AdmitLoopback lets URLs lead to this machine, at any port: for development and tests on one machine only.
	AdmitLoopback bool
	// Deployed says that other people's URLs come here: with it, AdmitLoopback is refused.
	Deployed bool
	// OwnHosts are the hosts of our own API and bucket, refused like those on a deny-list.
	OwnHosts Hosts
	// Resolver looks names up. Nil means Go's own: the C library reads "127.1" and "0x7f000001" as addresses.
	Resolver *net.Resolver
}

// Guard checks URLs and makes clients. It is safe for concurrent use.
type Guard struct {
	config   Config
	special  *ssrf.Guardian
	resolver *net.Resolver
	// beforeConnect is told every address that is about to be connected to, and can stop it. Nil but in tests.
	beforeConnect func(netip.AddrPort) error
}

// Policy is what one tenant's URLs are held to.
type Policy struct {
	Code  fault.Code // of a refusal for form or address: InvalidSourceURL or CallbackURLNotAllowed
	Allow Hosts      // when it has entries, nothing else is admitted; it admits no private address
	Deny  Hosts      // wins over Allow
}

// New makes a guard. It fails when loopback is to be admitted where it must not be.
func New(c Config) (*Guard, error) {
	if c.AdmitLoopback && c.Deployed {
		return nil, errors.New("URLs that lead to this machine cannot be admitted in a deployed function")
	}
	g := &Guard{config: c, resolver: c.Resolver, special: ssrf.New(ssrf.WithPorts(publicPorts...), ssrf.WithDeniedV4Prefixes(alsoDenied...))}
	if g.resolver == nil {
		g.resolver = &net.Resolver{PreferGo: true}
	}
	return g, nil
}

// Check holds a URL to every rule that can be judged before it is used: form, lists, literal address, and one
// resolution of its name. It gives the URL normalised, as it should be stored. Refusals are *fault.Error with
// details.reason. A name server that does not answer is no refusal: the rules hold again when the URL is dialled.
func (g *Guard) Check(ctx context.Context, rawURL string, p Policy) (*url.URL, error) {
	t, r := parse(rawURL)
	if r == nil {
		r = g.judge(t, p)
	}
	if r != nil {
		return nil, p.fault(r)
	}
	if t.addr.IsValid() {
		return t.url, nil
	}
	r, err := g.resolve(ctx, t)
	if err != nil {
		return nil, err
	}
	if r != nil {
		return nil, p.fault(r)
	}
	return t.url, nil
}

// judge applies the rules that need no look-up.
func (g *Guard) judge(t target, p Policy) *refusal {
	if r := g.judgeHost(t); r != nil {
		return r
	}
	switch {
	case g.config.OwnHosts.Match(t.host) || p.Deny.Match(t.host):
		return &refusal{ReasonDenied, "this host is on the deny-list"}
	case !p.Allow.Empty() && !p.Allow.Match(t.host):
		return &refusal{ReasonNotAllowed, "this host is not on the allow-list"}
	}
	return nil
}

func (g *Guard) judgeHost(t target) *refusal {
	switch {
	case t.addr.IsValid():
		return g.judgeAddress(netip.AddrPortFrom(t.addr, t.port))
	case localName(t.host) && !(g.config.AdmitLoopback && loopbackName(t.host)):
		return privateAddress()
	case !g.config.AdmitLoopback && !allowedPort(t.port):
		return portNotAllowed()
	}
	return nil
}

// resolve looks the name up once. Every address must be public: a name that mixes both is an attempt or a fault.
func (g *Guard) resolve(ctx context.Context, t target) (*refusal, error) {
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := g.resolver.LookupNetIP(limited, "ip", absolute(t.host))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return &refusal{ReasonUnresolvable, "the host of the URL has no address"}, nil
	}
	for _, a := range addrs {
		if r := g.judgeAddress(netip.AddrPortFrom(a, t.port)); r != nil {
			return r, nil
		}
	}
	return nil, nil
}

// refusal is a rule that a URL breaks.
type refusal struct{ reason, message string }

func privateAddress() *refusal {
	return &refusal{ReasonPrivateAddress, "the URL leads to an address that is not public"}
}

func portNotAllowed() *refusal {
	return &refusal{ReasonPort, "the URL must use port 80 or 443"}
}

// fault says a refusal in the words of the contract.
func (p Policy) fault(r *refusal) *fault.Error {
	code := p.Code
	if r.reason == ReasonDenied || r.reason == ReasonNotAllowed {
		code = DomainBlocked
	}
	return fault.New(code, "%s", r.message).With("reason", r.reason)
}
