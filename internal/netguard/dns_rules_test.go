package netguard

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestEveryAddressOfANameIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   string
	}{
		"name of loopback":              {"127.0.0.1", private},
		"public then private":           {"93.184.215.14 10.0.0.1", private},
		"private then public":           {"10.0.0.1 93.184.215.14", private},
		"public and private IPv6":       {"93.184.215.14 fd00::1", private},
		"mapped metadata service alone": {"::ffff:169.254.169.254", private},
		"NAT64 of a private address":    {"64:ff9b::a00:1", private},
		"no address at all":             {"", form},
		"IPv6 alone":                    {"2606:4700:4700::1111", "ok"},
		"several public":                {"93.184.215.14 93.184.215.15 2606:4700:4700::1111", "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			z := &zone{answers: map[string][]string{"a.example.com": {c.answer}}, aliases: map[string]string{"alias.example.com": "a.example.com"}}
			w := watch(t, z, Config{})
			for _, url := range []string{"https://a.example.com/", "https://alias.example.com/"} {
				if _, err := w.Check(t.Context(), url, source); verdict(err) != c.want {
					t.Errorf("Check(%s) = %s, want %s", url, verdict(err), c.want)
				}
			}
		})
	}
}

func TestPrivateAddressesOfANameAreNotDialled(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		refused bool
		dialled int
	}{
		"only private":        {"10.0.0.1 fd00::1", true, 0},
		"public then private": {"93.184.215.14 10.0.0.1", false, 1},
		"private then public": {"10.0.0.1 93.184.215.14", false, 1},
		"both families":       {"fd00::1 93.184.215.14", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, &zone{answers: map[string][]string{"a.example.com": {c.answer}}}, Config{})
			_, err := w.fetch(t, "http://a.example.com/", 0)
			if refused := verdict(err) == private; err == nil || refused != c.refused || len(w.dialled()) != c.dialled {
				t.Errorf("%v, dialled %v", err, w.dialled())
			}
		})
	}
}

// A name server that answers a check with a public address and the dial with a private one gains nothing.
func TestAnswersThatChangeAfterTheCheckAreJudgedAgain(t *testing.T) {
	z := &zone{answers: map[string][]string{"rebind.example.com": {"93.184.215.14", "127.0.0.1"}}}
	w := watch(t, z, Config{})
	u, err := w.Check(t.Context(), "http://rebind.example.com/", source)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.fetch(t, u.String(), 0); verdict(err) != private {
		t.Errorf("got %v", err)
	}
	if n := z.times("rebind.example.com", dnsmessage.TypeA); n != 2 || len(w.dialled()) > 0 {
		t.Errorf("asked %d times, dialled %v", n, w.dialled())
	}
}

func TestEveryRequestIsJudgedByItsOwnDial(t *testing.T) {
	port := listen(t)
	z := &zone{answers: map[string][]string{"rebind.example.com": {"127.0.0.1", "10.0.0.1"}}}
	w := watch(t, z, Config{AdmitLoopback: true})
	client := w.Client(source, limits(0))
	url := "http://rebind.example.com:" + port + "/"
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if _, err := client.Get(url); err == nil || len(w.dialled()) != 1 {
		t.Errorf("a second request got %v; dialled %v", err, w.dialled())
	}
}

func TestFailingNameServerIsNoRefusal(t *testing.T) {
	w := watch(t, &zone{failing: map[string]bool{"a.example.com": true}}, Config{})
	if _, err := w.Check(t.Context(), "http://a.example.com/", source); err != nil {
		t.Errorf("a server failure is told as %v", err)
	}
	if _, err := w.fetch(t, "http://a.example.com/", 0); err == nil || verdict(err) != "error" {
		t.Errorf("fetch gave %v, want a fault that may pass", err)
	}
}

func TestHangingNameServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		g, err := New(Config{Resolver: hang})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := g.Check(t.Context(), "http://a.example.com/", source); err != nil || time.Since(start) > lookupTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		_, err = g.Client(source, limits(0)).Get("http://a.example.com/")
		var netErr net.Error
		if !errors.As(err, &netErr) || !netErr.Timeout() {
			t.Errorf("fetch gave %v, want a time-out", err)
		}
	})
}

func TestCheckEndsWithItsContext(t *testing.T) {
	w := watch(t, names(), Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Check(ctx, "http://example.com/", source); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
