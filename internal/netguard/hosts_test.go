package netguard

import "testing"

func TestHostsMatch(t *testing.T) {
	h, err := ParseHosts("Exact.example.com", ".Example.ORG", "8.8.8.8", "[2606:4700:4700::1111]", "Bücher.example")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"exact.example.com": true, "a.exact.example.com": false, "example.com": false, "example.org": true, "a.example.org": true, "a.b.example.org": true,
		"badexample.org": false, "org": false, "8.8.8.8": true, "8.8.8": false, "2606:4700:4700::1111": true, "xn--bcher-kva.example": true, "": false,
	} {
		if h.Match(host) != want {
			t.Errorf("Match(%q) = %v", host, !want)
		}
	}
	if (Hosts{}).Match("") || !(Hosts{}).Empty() || h.Empty() {
		t.Error("the empty list is not empty")
	}
}

func TestHostsRefuseWhatIsNoHost(t *testing.T) {
	for _, e := range []string{"", ".", "*.example.com", "http://example.com", "a b", "example.com:80", ".10.0.0.1", "example.com/", "[1.2.3.4]"} {
		if _, err := ParseHosts(e); err == nil {
			t.Errorf("ParseHosts(%q) accepted", e)
		}
	}
}

func TestListsDecideOverNames(t *testing.T) {
	list := func(entries ...string) Hosts {
		h, err := ParseHosts(entries...)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	w := watch(t, &zone{answers: map[string][]string{"a.example.com": {"8.8.8.8"}, "inside.example.com": {"10.0.0.1"}}}, Config{OwnHosts: list("api.example.com")})
	allow := Policy{Code: CallbackURLNotAllowed, Allow: list(".example.com", "10.0.0.1"), Deny: list("b.example.com")}
	for url, want := range map[string]string{
		"https://a.example.com/":      "ok",
		"https://b.example.com/":      "DOMAIN_BLOCKED denylist",
		"https://B.EXAMPLE.com./":     "DOMAIN_BLOCKED denylist",
		"https://api.example.com/":    "DOMAIN_BLOCKED denylist",
		"https://other.org/":          "DOMAIN_BLOCKED not_in_allowlist",
		"https://8.8.8.8/":            "DOMAIN_BLOCKED not_in_allowlist",
		"https://10.0.0.1/":           "CALLBACK_URL_NOT_ALLOWED private_address_blocked",
		"https://inside.example.com/": "CALLBACK_URL_NOT_ALLOWED private_address_blocked",
		"https://c.example.com/":      "CALLBACK_URL_NOT_ALLOWED unresolvable",
	} {
		if _, err := w.Check(t.Context(), url, allow); verdict(err) != want {
			t.Errorf("Check(%s) = %s, want %s", url, verdict(err), want)
		}
	}
}
