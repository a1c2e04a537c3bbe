package netguard

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const (
	private   = "INVALID_SOURCE_URL private_address_blocked"
	form      = "INVALID_SOURCE_URL unresolvable"
	badPort   = "INVALID_SOURCE_URL port_not_allowed"
	badScheme = "INVALID_SOURCE_URL scheme_not_allowed"
	userinfo  = "INVALID_SOURCE_URL userinfo_not_allowed"
	longURL   = "INVALID_SOURCE_URL too_long"
)

// verdicts of the check list of URL guards: how each input is judged when it is submitted and when it is
// fetched. "ok" names the URL as it is stored in place of a verdict.
var checkList = []struct {
	want string
	urls []string
}{
	// Loopback, in every way to write it.
	{private, []string{"http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/", "http://0X7F000001/",
		"http://0x7f.0x0.0x0.0x1/", "http://0177.0.0.1/", "http://017700000001/", "http://127.0.0.01/", "http://0/", "http://0x/", "http://0.0.0.0/",
		"http://0.1.2.3/", "http://127.0.0.1./", "http://127.255.255.255/", "https://127.0.0.1/"}},
	{private, []string{"http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://x.localhost/"}},
	{private, []string{"http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://１２７．０．０．１/", "http://ⓛocalhost/", "http://loc\u00adalhost/"}},
	{form, []string{"http://%31%32%37.0.0.1/", "http://%6c%6fcalhost/", "http://%fc.example.com/"}},
	{form, []string{"http://256.256.256.256/", "http://1.2.3.4.5/", "http://999999999999/", "http://1.2.3.0x100000000000000000/", "http://08/", "http://1..2/",
		"http://127.0.0.+1/"}},
	// Private, link-local, shared, reserved and documentation ranges, and their edges.
	{private, []string{"http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/"}},
	{"ok", []string{"http://172.32.0.1/", "http://100.128.0.1/", "http://11.0.0.1/", "http://8.8.8.8/"}},
	{private, []string{"http://169.254.169.254/latest/meta-data/", "http://169.254.170.2/", "http://169.254.169.253/", "http://169.254.169.123/"}},
	{private, []string{"http://100.64.0.1/", "http://100.100.100.200/", "http://100.127.255.255/"}},
	{private, []string{"http://192.0.0.1/", "http://192.0.0.192/", "http://192.0.2.1/", "http://198.51.100.1/", "http://203.0.113.1/"}},
	{private, []string{"http://198.18.0.1/", "http://192.88.99.1/", "http://192.31.196.1/", "http://192.52.193.1/", "http://192.175.48.1/"}},
	{private, []string{"http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/", "http://168.63.129.16/"}},
	{"http://8.8.8.8/", []string{"http://134744072/", "http://8.8.2056/", "http://[::ffff:8.8.8.8]/", "http://8.8.8.8:80", "HTTP://8.8.8.8#x"}},
	// Names that are local by their form.
	{private, []string{"http://metadata.google.internal/", "http://x.internal/", "http://printer.local/", "http://router.home.arpa/", "http://intranet/", "http://com./"}},
	// Schemes and hosts.
	{badScheme, []string{"file:///etc/passwd", "file:///proc/self/environ", "gopher://127.0.0.1:25/_x", "ftp://example.com/", "javascript:alert(1)",
		"data:text/html,x", "//example.com/", "example.com", "", "ws://example.com/"}},
	{form, []string{"http:///127.0.0.1/", "http:/127.0.0.1/", "http:127.0.0.1", "http://", "http://.", "http://..", "https://:443/"}},
	{form, []string{" http://example.com/", "http://example.com/ ", "http://example.com/a b", "http://exam\tple.com/", "http://example.com/\r\nX: y", "http://example.com/\n",
		"http://example.com/\x00", "http://example.com/\xff", "http://exa mple.com/", "http://example.com/?a b"}},
	{badPort, []string{"http://example.com:0/", "http://example.com:65536/", "http://example.com:080/", "http://example.com:99999999999999999999/"}},
	{form, []string{"http://example.com:80:80/", "http://example.com:+80/", "http://example.com:-1/", "http://example.com:8O/"}},
	{badPort, []string{"http://example.com:22/", "http://example.com:25/", "http://example.com:6379/", "http://example.com:9001/", "http://8.8.8.8:8080/"}},
	{userinfo, []string{"http://user:pass@example.com/", "http://user@example.com/", "http://@example.com/", "http://example.com@127.0.0.1/", "http://127.0.0.1@example.com/"}},
	{form, []string{`http://example.com\@127.0.0.1/`, `http://127.0.0.1\@example.com/`, `http:\\127.0.0.1\x`, `http://example.com/\..\x`}},
	{private, []string{"http://127.0.0.1#@example.com/", "http://127.0.0.1?@example.com/"}},
	// IPv6.
	{form, []string{"http://[::1/", "http://::1/", "http://[127.0.0.1]/", "http://[[::1]]/", "http://[v1.x]/", "http://[]/", "http://[::1]x/"}},
	{private, []string{"http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/"}},
	{form, []string{"http://[::1%25lo]/", "http://[fe80::1%25eth0]/", "http://[::%25example.com]/", "http://[2606:4700:4700::1111%25eth0]/"}},
	{private, []string{"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:ffff:7f00:1]/", "http://[::ffff:169.254.169.254]/"}},
	{private, []string{"http://[::127.0.0.1]/", "http://[::a9fe:a9fe]/", "http://[::ffff:0:127.0.0.1]/"}},
	{private, []string{"http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b::808:808]/", "http://[64:ff9b:1::a9fe:a9fe]/", "http://[64:ff9b:1:1::808:808]/"}},
	{private, []string{"http://[2002:7f00:1::]/", "http://[2002:808:808::1]/", "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/"}},
	{private, []string{"http://[fc00::1]/", "http://[fd00:ec2::254]/", "http://[fd00:ec2::23]/", "http://[fe80::1]/", "http://[fec0::1]/", "http://[ff02::1]/"}},
	{private, []string{"http://[2001:db8::1]/", "http://[3fff::1]/", "http://[100::1]/", "http://[100:0:0:1::1]/", "http://[5f00::1]/", "http://[4000::1]/",
		"http://[2620:4f:8000::1]/"}},
	{"http://[2606:4700:4700::1111]/", []string{"http://[2606:4700:4700::1111]/", "http://[2606:4700:4700:0:0:0:0:1111]:80/"}},
	// Names.
	{"http://xn--pple-43d.com/", []string{"http://аpple.com/", "http://АPPLE.com./", "http://xn--pple-43d.com/"}},
	{"http://example.com/", []string{"http://exam\u00adple.com/", "http://exam\u200bple.com/", "http://EXAMPLE.com", "http://example.com.:80/", "http://ｅｘａｍｐｌｅ．ｃｏｍ"}},
	{"http://a_b.example.com/", []string{"http://a_b.example.com/"}},
	{form, []string{"http://xn--/", "http://a.b-.c/", "http://-a.example.com/", "http://a..example.com/", "http://" + strings.Repeat("a", 64) + ".com/",
		"http://" + strings.Repeat("a.", 127) + "com/", "http://xn--a.example.com/", "http://exa\uff0fmple.com/", "http://exa\uff20mple.com/", "http://exa\uff1ample.com/", "http://exa!mple.com/", "http://exa<mple.com/", "http://a\u05d0.example.com/", "http://a\u200db.example.com/"}},
	{longURL, []string{"http://example.com/" + strings.Repeat("a", MaxURLBytes), "http://example.com/?" + strings.Repeat("é", 400)}},
	{form, []string{"http://nowhere.example.com/"}},
	// Paths and queries.
	{"http://example.com/%0D%0AX:%20y", []string{"http://example.com/%0d%0aX:%20y"}},
	{"http://example.com/b/~c//d", []string{"http://example.com/a/../b/%7ec//./d", "http://example.com/a/%2e%2E/b/~c//d", "http://example.com/../b/%7Ec//d#e"}},
	{"http://example.com/%C3%A9%2Fx?q=%c3%A9&r=%2f..&s=%C3%A9", []string{"http://example.com/é%2fx?q=%c3%A9&r=%2f..&s=é"}},
	{"https://example.com/", []string{"https://example.com:443", "https://EXAMPLE.com:/#frag"}},
	{"https://example.com/?", []string{"https://example.com/?"}},
	{"https://example.com:80/", []string{"https://example.com:80/"}},
}

// names makes every name public but one, so that what is refused is refused for its form.
func names() *zone {
	return &zone{answers: map[string][]string{"nowhere.example.com": {""}}, other: "93.184.215.14"}
}

func TestCheckFollowsTheCheckList(t *testing.T) {
	w := watch(t, names(), Config{})
	for _, c := range checkList {
		for _, raw := range c.urls {
			u, err := w.Check(t.Context(), raw, source)
			got := verdict(err)
			if err == nil && c.want != "ok" {
				got = u.String()
			}
			if got != c.want {
				t.Errorf("Check(%q) = %s, want %s", raw, got, c.want)
			}
		}
	}
	if dialled := w.dialled(); len(dialled) > 0 {
		t.Errorf("a check connected to %v", dialled)
	}
}

// escapedByParsing are refused when submitted, and harmless once a *url.URL has been made of them.
var escapedByParsing = []string{"http://example.com/ ", "http://example.com/a b", "http://example.com/\xff", `http://example.com/\..\x`}

// What a check refuses, a client refuses too, and opens no connection for it; what a check admits is dialled.
func TestClientFollowsTheCheckList(t *testing.T) {
	for _, c := range checkList {
		for _, raw := range c.urls {
			w := watch(t, names(), Config{})
			_, err := w.fetch(t, raw, 0)
			refused := strings.HasPrefix(c.want, "INVALID") && !slices.Contains(escapedByParsing, raw)
			if opened := len(w.dialled()) > 0; err == nil || opened == refused || !refused && !errors.Is(err, errStop) {
				t.Errorf("fetch %q: %v, dialled %v", raw, err, w.dialled())
			}
		}
	}
}

func TestCheckUsesTheCodeOfItsPolicy(t *testing.T) {
	w := watch(t, nil, Config{})
	_, err := w.Check(t.Context(), "http://10.0.0.1/", Policy{Code: CallbackURLNotAllowed})
	if got := verdict(err); got != "CALLBACK_URL_NOT_ALLOWED private_address_blocked" {
		t.Errorf("got %s", got)
	}
}

func TestNormalisingTwiceChangesNothing(t *testing.T) {
	for _, c := range checkList {
		for _, raw := range c.urls {
			once, r := parse(raw)
			if r != nil {
				continue
			}
			twice, r := parse(once.url.String())
			if r != nil || twice.url.String() != once.url.String() || twice.host != once.host || twice.port != once.port {
				t.Errorf("%q: %v becomes %v (%v)", raw, once.url, twice.url, r)
			}
		}
	}
}

func TestLoopbackIsAdmittedOnlyWhereItMayBe(t *testing.T) {
	if _, err := New(Config{AdmitLoopback: true, Deployed: true}); err == nil {
		t.Error("a deployed guard admits loopback")
	}
	w := watch(t, &zone{answers: map[string][]string{"mixed.example.com": {"127.0.0.1"}, "inside.example.com": {"10.0.0.1"}}}, Config{AdmitLoopback: true})
	for url, want := range map[string]string{
		"http://127.0.0.1:8081/hook": "ok", "http://localhost:8081/": "ok", "http://[::1]:9/": "ok", "http://127.1:8081/": "ok", "http://mixed.example.com:8081/": "ok",
		"http://10.0.0.1/": private, "http://169.254.169.254/": private, "http://[fe80::1]/": private, "http://inside.example.com/": private,
		"http://8.8.8.8:8080/": badPort, "http://0.0.0.0/": private, "http://0.0.0.0:8081/": badPort, "http://[::ffff:127.0.0.1]:8081/": "ok", "http://intranet/": private,
	} {
		if _, err := w.Check(t.Context(), url, source); verdict(err) != want {
			t.Errorf("Check(%q) = %s, want %s", url, verdict(err), want)
		}
	}
}
