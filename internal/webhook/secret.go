package webhook

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// secretPrefix marks a webhook secret in its text form, as Standard Webhooks does.
const secretPrefix = "whsec_"

const (
	secretBytes    = 32
	minMasterBytes = 32
)

// Master is what all secrets are derived from; nothing that derives from it is stored. It prints as nothing.
type Master struct{ key []byte }

// ParseMaster reads a master secret: standard base64 of 32 random bytes or more.
func ParseMaster(text string) (Master, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) < minMasterBytes {
		return Master{}, fmt.Errorf("the master secret of webhooks must be base64 of at least %d bytes", minMasterBytes)
	}
	return Master{key}, nil
}

// Secret derives the secret of a tenant and generation (HKDF with SHA-256). The same arguments give the same
// secret for ever, which is why a generation is all that is stored.
func (m Master) Secret(tenant string, generation int) (Secret, error) {
	info := fmt.Sprintf("pintu webhook secret/%d:%s/%d", len(tenant), tenant, generation)
	key, err := hkdf.Key(sha256.New, m.key, nil, info, secretBytes)
	if err != nil {
		return Secret{}, fmt.Errorf("derive webhook secret %d: %w", generation, err)
	}
	return Secret{key}, nil
}

func (m Master) String() string   { return "[master secret]" }
func (m Master) GoString() string { return m.String() }

// Secret is the key of one generation: the decoded bytes sign, in both schemes. It prints as nothing.
type Secret struct{ key []byte }

// ParseSecret reads the text form of a secret, as a receiver has it.
func ParseSecret(text string) (Secret, error) {
	rest, found := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(rest)
	if !found || err != nil || len(key) == 0 {
		return Secret{}, errors.New("a webhook secret is whsec_ and standard base64")
	}
	return Secret{key}, nil
}

// Reveal gives the text form, "whsec_" and base64: for the one answer that shows it.
func (s Secret) Reveal() string { return secretPrefix + base64.StdEncoding.EncodeToString(s.key) }

func (s Secret) String() string   { return secretPrefix + "[hidden]" }
func (s Secret) GoString() string { return s.String() }

const (
	// Overlap is how long a secret stays valid after its successor was made.
	Overlap = 24 * time.Hour
	// MaxSecrets is how many may be valid at once. One more rotation would be of no use: nobody changes a
	// receiver three times a day, and somebody who repeats a request must not push out what receivers hold.
	MaxSecrets = 3
)

// Generation is one secret of a tenant, as it is stored.
type Generation struct {
	Number    int // from 1
	CreatedAt time.Time
}

// Generations are the secrets of a tenant, oldest first, none missing. A tenant that never asked for a secret
// has none stored; its deliveries are signed with the first, which the first rotation then shows.
type Generations []Generation

// TooManySecrets says that a rotation must wait until the oldest secret is no longer valid.
type TooManySecrets struct{ Until time.Time }

func (e *TooManySecrets) Error() string {
	return fmt.Sprintf("%d secrets are valid; the oldest is until %s", MaxSecrets, e.Until.Format(time.RFC3339))
}

// Valid gives the secrets that sign at a moment, newest first.
func (g Generations) Valid(now time.Time) Generations {
	if len(g) == 0 {
		return Generations{{Number: 1}}
	}
	var valid Generations
	for i := len(g) - 1; i >= 0; i-- {
		if until := g.ValidUntil(i); until.IsZero() || now.Before(until) {
			valid = append(valid, g[i])
		}
	}
	return valid
}

// ValidUntil tells when the secret at a position ends; the zero time while it is the newest.
func (g Generations) ValidUntil(i int) time.Time {
	if i == len(g)-1 {
		return time.Time{}
	}
	return g[i+1].CreatedAt.Add(Overlap)
}

// Rotate adds a generation and leaves out those that have ended. The newest is the last of the result.
func (g Generations) Rotate(now time.Time) (Generations, error) {
	if len(g) == 0 {
		return Generations{{Number: 1, CreatedAt: now}}, nil
	}
	valid := len(g.Valid(now))
	kept := g[len(g)-valid:]
	if valid >= MaxSecrets {
		return nil, &TooManySecrets{Until: kept.ValidUntil(0)}
	}
	return append(append(Generations{}, kept...), Generation{Number: kept[valid-1].Number + 1, CreatedAt: now}), nil
}

// Secrets derives the secrets that sign a tenant's deliveries at a moment, newest first.
func (m Master) Secrets(tenant string, g Generations, now time.Time) ([]Secret, error) {
	var secrets []Secret
	for _, gen := range g.Valid(now) {
		s, err := m.Secret(tenant, gen.Number)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}
