package webhook

import (
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func signed(t testing.TB, at time.Time, body string, secrets ...Secret) http.Header {
	t.Helper()
	h := http.Header{}
	sign(h, "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV", at, []byte(body), secrets)
	return h
}

// The signature of a fixed secret, time and body, made with openssl:
//
//	printf '1785153600.{"a":1}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f
func TestSignatureOfAFixedInput(t *testing.T) {
	s, err := ParseSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	h := signed(t, noon, `{"a":1}`, s)
	for name, want := range map[string]string{
		"X-Webhook-Id": "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV", "X-Webhook-Timestamp": "1785153600",
		"X-Webhook-Signature": "v1=99adebd152d10b90ead7d8a3c7909631909ab6dea8eb85fd7832f6778befde15",
		"Webhook-Id":          "evt_01ARZ3NDEKTSV4RRFFQ69G5FAV", "Webhook-Timestamp": "1785153600", "Webhook-Signature": "v1,qLstGP69xetk9YAxjBBqCzBLZx22P45R09V5UW+WTAc=",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestVerify(t *testing.T) {
	old, now, body := secret(t, "acme", 1), secret(t, "acme", 2), jobEvent(t).Body
	stranger := secret(t, "other", 1)
	good := func() http.Header { return signed(t, noon, string(body), now, old) }
	for name, c := range map[string]struct {
		change func(http.Header)
		body   []byte
		at     time.Time
		key    Secret
		want   error
	}{
		"as sent":                      {at: noon, key: now},
		"by the older secret":          {at: noon, key: old},
		"300 seconds old":              {at: noon.Add(Tolerance), key: now},
		"300 seconds ahead":            {at: noon.Add(-Tolerance), key: now},
		"301 seconds old":              {at: noon.Add(Tolerance + time.Second), key: now, want: ErrTooOld},
		"301 seconds ahead":            {at: noon.Add(-Tolerance - time.Second), key: now, want: ErrTooOld},
		"another tenant's secret":      {at: noon, key: stranger, want: ErrBadSignature},
		"one byte of the body changed": {at: noon, key: now, body: []byte(strings.Replace(string(body), "import", "export", 1)), want: ErrBadSignature},
		"body without its last byte":   {at: noon, key: now, body: body[:len(body)-1], want: ErrBadSignature},
		"fresh time on an old signature": {at: noon.Add(time.Hour), key: now, want: ErrBadSignature,
			change: func(h http.Header) { h.Set(headerTimestamp, strconv.FormatInt(noon.Add(time.Hour).Unix(), 10)) }},
		"no time":           {at: noon, key: now, want: ErrNoSignature, change: func(h http.Header) { h.Del(headerTimestamp) }},
		"time of words":     {at: noon, key: now, want: ErrNoSignature, change: func(h http.Header) { h.Set(headerTimestamp, "noon") }},
		"no signature":      {at: noon, key: now, want: ErrNoSignature, change: func(h http.Header) { h.Del(headerSignature) }},
		"signature of hex":  {at: noon, key: now, want: ErrBadSignature, change: func(h http.Header) { h.Set(headerSignature, "v1=00ff") }},
		"signature garbage": {at: noon, key: now, want: ErrBadSignature, change: func(h http.Header) { h.Set(headerSignature, "v1=,,v0=x,v1") }},
	} {
		t.Run(name, func(t *testing.T) {
			h, b := good(), body
			if c.change != nil {
				c.change(h)
			}
			if c.body != nil {
				b = c.body
			}
			if err := Verify(h, b, c.at, c.key); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// The library of the Standard Webhooks project accepts what we sign and refuses what was changed.
func TestStandardWebhooksLibraryAgrees(t *testing.T) {
	now := time.Now()
	first, second := secret(t, "acme", 1), secret(t, "acme", 2)
	for name, s := range map[string]Secret{"newer": second, "older": first} {
		library, err := standardwebhooks.NewWebhook(s.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{string(jobEvent(t).Body), "", "{}", "\x00\xff", strings.Repeat("x", 1<<20)} {
			h := signed(t, now, body, second, first)
			if err := library.Verify([]byte(body), h); err != nil {
				t.Errorf("%s: refused %.40q: %v", name, body, err)
			}
			if err := library.Verify([]byte(body+" "), h); err == nil {
				t.Errorf("%s: a changed body was accepted", name)
			}
			h.Set(standardID, "evt_other")
			if err := library.Verify([]byte(body), h); err == nil {
				t.Errorf("%s: a changed id was accepted", name)
			}
		}
		if err := library.Verify([]byte("x"), signed(t, now.Add(-6*time.Minute), "x", s)); err == nil {
			t.Errorf("%s: an old time was accepted", name)
		}
	}
}

func FuzzVerify(f *testing.F) {
	key := secret(f, "acme", 1)
	good := signed(f, noon, "{}", key)
	f.Add("1785153600", good.Get(headerSignature), []byte("{}"))
	f.Add("", "v1=", []byte{})
	f.Fuzz(func(t *testing.T, timestamp, signature string, body []byte) {
		h := http.Header{headerTimestamp: {timestamp}, headerSignature: {signature}}
		right := hex.EncodeToString(key.mac(timestamp, ".", string(body)))
		if Verify(h, body, noon, key) == nil && !strings.Contains(strings.ToLower(signature), right) {
			t.Errorf("accepted %q", signature)
		}
	})
}
