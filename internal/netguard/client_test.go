package netguard

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// listen serves 200 on loopback and gives the port.
func listen(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// site is a server on loopback whose paths redirect as the table says; every other path answers 200.
func site(t *testing.T, redirects map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, ok := redirects[r.URL.Path]; ok {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprintf(w, "%s %s", r.URL.Path, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestRedirectsAreAnswersUnlessAsked(t *testing.T) {
	s := site(t, map[string]string{"/a": "/b"})
	resp, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, s.URL+"/a", 0)
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Fatalf("%v %v", resp, err)
	}
}

func TestRedirectsAreHeldToEveryRule(t *testing.T) {
	deny, err := ParseHosts("denied.example.com")
	if err != nil {
		t.Fatal(err)
	}
	policy := Policy{Code: InvalidSourceURL, Deny: deny}
	z := &zone{answers: map[string][]string{"denied.example.com": {"8.8.8.8"}, "inside.example.com": {"10.1.2.3"}, "hop.example.com": {"127.0.0.1"}}}
	for to, want := range map[string]string{
		"http://169.254.169.254/": private, "//10.0.0.1/": private, "HTTP://10.0.0.1/": private, "http://0xa000001/": private, "http://167772161/": private,
		"http://inside.example.com/": private, "http://[::ffff:10.0.0.1]/": private, "http://metadata.google.internal/": private,
		"file:///etc/passwd": badScheme, "gopher://127.0.0.1:25/_x": badScheme, "javascript:alert(1)": badScheme, "data:text/html,x": badScheme,
		"http://u:p@hop.example.com/": userinfo, "http://denied.example.com/": "DOMAIN_BLOCKED denylist", "http://8.8.8.8:22/": badPort,
		"http://[fe80::1%25eth0]/": form, "/fine": "ok", "http://[::1": "error",
	} {
		s := site(t, map[string]string{"/start": to})
		w := watch(t, z, Config{AdmitLoopback: true})
		resp, err := w.Client(policy, limits(5)).Get(s.URL + "/start")
		if err == nil {
			resp.Body.Close()
		}
		if verdict(err) != want {
			t.Errorf("redirect to %s: %v, want %s", to, err, want)
		}
		if n := len(w.dialled()); want == "ok" && n != 2 || want != "ok" && n != 1 {
			t.Errorf("redirect to %s dialled %v", to, w.dialled())
		}
	}
}

func TestLaterHopsAreHeldToTheRules(t *testing.T) {
	s := site(t, map[string]string{"/a": "/b", "/b": "http://192.168.0.1/"})
	if _, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, s.URL+"/a", 5); verdict(err) != private {
		t.Errorf("got %v", err)
	}
}

func TestRedirectsEnd(t *testing.T) {
	hops := map[string]string{"/a": "/b", "/b": "/a", "/self": "/self", "/empty": ""}
	for i := range 9 {
		hops[fmt.Sprintf("/%d", i)] = fmt.Sprintf("/%d", i+1)
	}
	s := site(t, hops)
	for path, want := range map[string]error{"/a": ErrRedirectLoop, "/self": ErrRedirectLoop, "/4": nil, "/3": ErrTooManyRedirects, "/9": nil} {
		_, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, s.URL+path, 5)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	resp, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, s.URL+"/empty", 5)
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Errorf("an empty Location: %v %v", resp, err)
	}
}

// Browsers read backslashes as slashes, Go as part of a path: either way it stays on its host.
func TestBackslashesOfALocationStayOnTheHost(t *testing.T) {
	s := site(t, map[string]string{"/a": `\\10.0.0.1\x`})
	w := watch(t, nil, Config{AdmitLoopback: true})
	_, err := w.fetch(t, s.URL+"/a", 5)
	for _, to := range w.dialled() {
		if !to.Addr().Unmap().IsLoopback() {
			t.Errorf("dialled %v (%v)", to, err)
		}
	}
}

// The environment is read once in a process, so that what it says cannot be tried out here.
func TestTransportTakesNoProxyAndNoOldTLS(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	inner, ok := g.Client(source, limits(0)).Transport.(guarded).next.(*http.Transport)
	if !ok || inner.Proxy != nil || inner.TLSClientConfig.MinVersion != tls.VersionTLS12 || inner.TLSClientConfig.InsecureSkipVerify || inner.DialTLSContext != nil {
		t.Errorf("%+v", inner)
	}
}

// What does not answer is given up: a header that does not come, and a body that does not end.
func TestSilentServersAreGivenUp(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.WriteHeader(http.StatusOK)
			http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	for path, l := range map[string]Limits{
		"/header": {Connect: time.Minute, FirstByte: 50 * time.Millisecond, Total: time.Hour},
		"/body":   {Connect: time.Minute, FirstByte: time.Hour, Total: 50 * time.Millisecond},
	} {
		w := watch(t, nil, Config{AdmitLoopback: true})
		resp, err := w.Client(source, l).Get(s.URL + path)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestNormalisedURLIsWhatIsSent(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Host + r.RequestURI }))
	t.Cleanup(s.Close)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	if _, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, "http://2130706433"+port+"/%0d%0aX:%20y/../z?%0d%0a#f", 0); err != nil {
		t.Fatal(err)
	}
	if want := "127.0.0.1" + port + "/z?%0d%0a"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestHeadersOfAnswersAreBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 10_000 {
			w.Header().Add("Set-Cookie", fmt.Sprintf("c%d=%s", i, strings.Repeat("x", 10)))
		}
	}))
	t.Cleanup(s.Close)
	if _, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, s.URL, 0); err == nil || verdict(err) != "error" {
		t.Errorf("got %v", err)
	}
}

func TestCompressedAnswersComeAsTheyAre(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.CopyN(z, zeros{}, 10<<20); err != nil {
		t.Fatal(err)
	}
	z.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("asked for %s", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	}))
	t.Cleanup(s.Close)
	resp, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, s.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, resp.Body); got != packed.String() {
		t.Errorf("read %d bytes of %d", len(got), packed.Len())
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestCertificatesAreVerified(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	if _, err := watch(t, nil, Config{AdmitLoopback: true}).fetch(t, s.URL, 0); err == nil || verdict(err) != "error" {
		t.Errorf("got %v", err)
	}
}

func TestNoConnectionIsKept(t *testing.T) {
	s := site(t, nil)
	w := watch(t, nil, Config{AdmitLoopback: true})
	client := w.Client(source, limits(0))
	for range 3 {
		resp, err := client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		text(t, resp.Body)
		resp.Body.Close()
	}
	if n := len(w.dialled()); n != 3 {
		t.Errorf("3 requests made %d connections", n)
	}
}

// closing notes that a body was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestBodyOfARefusedRequestIsClosed(t *testing.T) {
	body := &closing{Reader: strings.NewReader("x")}
	_, err := watch(t, nil, Config{}).Client(source, limits(0)).Post("http://10.0.0.1/", "text/plain", body)
	if !body.closed || verdict(err) != private {
		t.Errorf("closed %v: %v", body.closed, err)
	}
}

func TestRefusalsSayNothingOfTheAddress(t *testing.T) {
	z := &zone{answers: map[string][]string{"secret.example.com": {"10.20.30.40"}}}
	w := watch(t, z, Config{})
	_, err := w.Check(t.Context(), "http://secret.example.com/?token=abc", source)
	_, dialErr := w.fetch(t, "http://secret.example.com/?token=abc", 0)
	var inner *url.Error
	if !errors.As(dialErr, &inner) {
		t.Fatal(dialErr)
	}
	for _, e := range []error{err, inner.Err} {
		if slices.ContainsFunc([]string{"10.20", "abc"}, func(s string) bool { return strings.Contains(e.Error(), s) }) {
			t.Errorf("%v", e)
		}
	}
}
