package access

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
	"time"
)

// Token is what is stored of a token: never the secret. Dropping it revokes it.
type Token struct {
	ID             string
	Hash           [sha256.Size]byte // of the secret's text
	Tenant, Client string
	Scopes         []Scope
	CreatedAt      time.Time
	ExpiresAt      time.Time // zero: never
	LastUsedAt     time.Time // within an hour of the truth; zero: never used
}

// Expired tells whether the token is no longer good at now.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }

// A token reads pintu_<id>_<secret>. The id only finds the hash; the secret is 256 random bits, so that
// a plain SHA-256 of it cannot be guessed back.
const (
	tokenPrefix = "pintu_"
	idBytes     = 10 // 16 characters
	secretBytes = 32 // 52 characters
)

var (
	letters    = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	idChars    = letters.EncodedLen(idBytes)
	tokenChars = len(tokenPrefix) + idChars + 1 + letters.EncodedLen(secretBytes)
)

// newToken draws an id and a secret from random and gives the text to hand out, once, and what to keep.
func newToken(random io.Reader) (text string, kept Token, err error) {
	b := make([]byte, idBytes+secretBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", Token{}, fmt.Errorf("draw a token: %w", err)
	}
	id, secret := letters.EncodeToString(b[:idBytes]), letters.EncodeToString(b[idBytes:])
	return tokenPrefix + id + "_" + secret, Token{ID: id, Hash: sha256.Sum256([]byte(secret))}, nil
}

// parseToken splits a token. ok is false for a text that newToken could not have made, so that nothing
// else becomes part of a key.
func parseToken(text string) (id, secret string, ok bool) {
	rest, found := strings.CutPrefix(text, tokenPrefix)
	if !found || len(text) != tokenChars || rest[idChars] != '_' {
		return "", "", false
	}
	id, secret = rest[:idChars], rest[idChars+1:]
	return id, secret, isLetters(id) && isLetters(secret)
}

func isLetters(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// TokenID gives the id inside a token's text, empty when it has no token's form. An id is no secret.
func TokenID(text string) string {
	id, _, ok := parseToken(text)
	if !ok {
		return ""
	}
	return id
}
