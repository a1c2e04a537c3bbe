package netguard

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is a name server on loopback: for each name, what it answers the first time, the second time, and so on;
// the last answer is repeated. A name that is not there does not exist; "alias" entries are CNAMEs.
type zone struct {
	mu      sync.Mutex
	answers map[string][]string // name -> answers in turn, each a space-separated list of addresses
	aliases map[string]string
	failing map[string]bool // names that the server fails on
	other   string          // answer for every name that is not there; empty: it does not exist
	asked   map[string]int
}

// serve starts the name server and gives a resolver that asks it alone.
func (z *zone) serve(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	z.mu.Lock()
	z.asked = map[string]int{}
	z.mu.Unlock()
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := z.reply(buf[:n]); reply != nil {
				conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (z *zone) reply(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	addrs, exists := z.next(name, q.Type)
	switch {
	case z.failing[name]:
		m.RCode = dnsmessage.RCodeServerFailure
	case !exists:
		m.RCode = dnsmessage.RCodeNameError
	default:
		m.Answers = records(q.Name, z.aliases[name], addrs, q.Type)
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// next counts a question and gives the answer whose turn it is. A and AAAA questions have turns of their own.
func (z *zone) next(name string, typ dnsmessage.Type) (addrs []netip.Addr, exists bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	turn := z.asked[name+typ.String()]
	z.asked[name+typ.String()]++
	if to := z.aliases[name]; to != "" {
		name = to
	}
	turns, exists := z.answers[name]
	if !exists && z.other != "" {
		turns, exists = []string{z.other}, true
	}
	if exists {
		for text := range strings.FieldsSeq(turns[min(turn, len(turns)-1)]) {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
	}
	return addrs, exists
}

// times tells how often a question was asked.
func (z *zone) times(name string, typ dnsmessage.Type) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked[name+typ.String()]
}

func records(name dnsmessage.Name, alias string, addrs []netip.Addr, typ dnsmessage.Type) (answers []dnsmessage.Resource) {
	if alias != "" {
		to := dnsmessage.MustNewName(alias + ".")
		answers = append(answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, Type: dnsmessage.TypeCNAME},
			Body: &dnsmessage.CNAMEResource{CNAME: to}})
		name = to
	}
	for _, a := range addrs {
		h := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}
		switch {
		case a.Is4() && typ == dnsmessage.TypeA:
			answers = append(answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && typ == dnsmessage.TypeAAAA:
			answers = append(answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return answers
}
