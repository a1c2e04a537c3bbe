package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"testing"
	"testing/iotest"
	"time"
)

func TestNewToken(t *testing.T) {
	text, kept, err := newToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^pintu_[a-z2-7]{16}_[a-z2-7]{52}$`).MatchString(text) {
		t.Errorf("token %q", text)
	}
	id, secret, ok := parseToken(text)
	if !ok || id != kept.ID || sha256.Sum256([]byte(secret)) != kept.Hash {
		t.Errorf("parseToken(%q) = %q, %q, %v; kept %+v", text, id, secret, ok, kept)
	}
	if other, _, _ := newToken(rand.Reader); other == text {
		t.Error("two tokens are the same")
	}
}

func TestNewTokenNeedsAllItsRandomBytes(t *testing.T) {
	short := iotest.DataErrReader(bytes.NewReader(make([]byte, idBytes+secretBytes-1)))
	if text, _, err := newToken(short); err == nil {
		t.Errorf("made %q out of too few random bytes", text)
	}
}

func TestParseTokenRefuses(t *testing.T) {
	good, _, err := newToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"nothing":               "",
		"no prefix":             good[len(tokenPrefix):],
		"another prefix":        "pinto_" + good[len(tokenPrefix):],
		"scheme kept":           "Bearer " + good,
		"short":                 good[:len(good)-1],
		"long":                  good + "a",
		"separator moved":       good[:len(tokenPrefix)+15] + "_a" + good[len(tokenPrefix)+17:],
		"upper case":            "pintu_" + "A" + good[len(tokenPrefix)+1:],
		"key separator":         "pintu_" + "#" + good[len(tokenPrefix)+1:],
		"bad letter in secret":  good[:len(good)-1] + "1",
		"second separator":      good[:len(good)-1] + "_",
		"multi-byte characters": "pintu_" + "é" + good[len(tokenPrefix)+2:],
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if id, secret, ok := parseToken(text); ok {
				t.Errorf("parseToken(%q) = %q, %q", text, id, secret)
			}
			if id := TokenID(text); id != "" {
				t.Errorf("TokenID(%q) = %q", text, id)
			}
		})
	}
}

func TestTokenExpires(t *testing.T) {
	at := time.Unix(1000, 0)
	tests := []struct {
		name    string
		expires time.Time
		now     time.Time
		want    bool
	}{
		{"never", time.Time{}, at, false},
		{"a moment before", at, at.Add(-1), false},
		{"at its end", at, at, true},
		{"after", at, at.Add(1), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := (Token{ExpiresAt: tt.expires}).Expired(tt.now); got != tt.want {
				t.Errorf("Expired = %v, want %v", got, tt.want)
			}
		})
	}
}
