// Package idempotency says what one HTTP intent is: the client's key, and a fingerprint of what was
// asked. It refuses to store anything: the record is written by the transaction that does the work.
package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"pintu/internal/fault"
)

// Window is how long a key is remembered. Expiry is checked in code, since the store removes expired
// items late.
const Window = 24 * time.Hour

// Intent is one request that must happen at most once. A zero Intent has no key and is not remembered.
type Intent struct {
	Key         string
	Fingerprint string // hex SHA-256, see Fingerprint
}

// Outcome says what the first request with a key came to; httpapi turns it into the first status.
type Outcome string

const (
	Created      Outcome = "created"      // a job was made
	Deduplicated Outcome = "deduplicated" // an earlier job of the same business intent was found
	Changed      Outcome = "changed"      // a job was moved on (complete, cancel, upload-url)
	NewVersion   Outcome = "new_version"  // a dataset version was made
	Unchanged    Outcome = "unchanged"    // the dataset was already so
)

// Record is what is kept of an intent: never an answer, only the name of what it made (a job id, or
// dataset@version).
type Record struct {
	Fingerprint string
	Outcome     Outcome
	Ref         string
	ExpiresAt   time.Time
}

// Match compares an intent with the record found under its key. It is the only place that does, whatever
// read brought the record.
func (r Record) Match(in Intent) error {
	if r.Fingerprint == in.Fingerprint {
		return nil
	}
	return fault.New(fault.KeyReused, "this Idempotency-Key was used for another request; use a new key for a new intent").With("job_id", r.Ref)
}

// CheckKey checks the form of an Idempotency-Key: 1 to 255 visible ASCII characters.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > 255 {
		return fault.New(fault.InvalidIdempotencyKey, "Idempotency-Key must have 1 to 255 characters")
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return fault.New(fault.InvalidIdempotencyKey, "Idempotency-Key must be visible ASCII characters without spaces")
		}
	}
	return nil
}

// Fingerprint hashes method, concrete path and the request as it was understood: body is the decoded
// request with its defaults filled in, so that absent, null and default are the same request.
func Fingerprint(method, path string, body any) (string, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("canonical body: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s", method, path, b)
	return hex.EncodeToString(h.Sum(nil)), nil
}
