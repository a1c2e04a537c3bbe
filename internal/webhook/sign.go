package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of a delivery: our own, and those of Standard Webhooks, which existing libraries verify.
const (
	headerID          = "X-Webhook-Id"
	headerTimestamp   = "X-Webhook-Timestamp"
	headerSignature   = "X-Webhook-Signature"
	standardID        = "Webhook-Id"
	standardTimestamp = "Webhook-Timestamp"
	standardSignature = "Webhook-Signature"
)

// Tolerance is how far the time of a try may be from the receiver's clock, either way.
const Tolerance = 300 * time.Second

// sign sets the headers of a try made at a moment. With several secrets, both schemes carry a signature of each,
// so that a receiver that holds any of them can verify.
func sign(h http.Header, event EventID, at time.Time, body []byte, secrets []Secret) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	var ours, standard []string
	for _, s := range secrets {
		ours = append(ours, "v1="+hex.EncodeToString(s.mac(timestamp, ".", string(body))))
		standard = append(standard, "v1,"+base64.StdEncoding.EncodeToString(s.mac(string(event), ".", timestamp, ".", string(body))))
	}
	h.Set(headerID, string(event))
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, strings.Join(ours, ","))
	h.Set(standardID, string(event))
	h.Set(standardTimestamp, timestamp)
	h.Set(standardSignature, strings.Join(standard, " "))
}

func (s Secret) mac(parts ...string) []byte {
	m := hmac.New(sha256.New, s.key)
	for _, p := range parts {
		m.Write([]byte(p)) // a hash never fails
	}
	return m.Sum(nil)
}

// Errors of Verify.
var (
	ErrNoSignature  = errors.New("a header of the signature is missing or malformed")
	ErrTooOld       = errors.New("the time of the signature is more than 300 seconds away")
	ErrBadSignature = errors.New("no signature fits")
)

// Verify is what a receiver does: it holds the raw body of a request to its X-Webhook headers. Which event it is
// says event_id in the body; the header that repeats it is not signed in this scheme.
func Verify(h http.Header, body []byte, now time.Time, secrets ...Secret) error {
	timestamp, signatures := h.Get(headerTimestamp), h.Get(headerSignature)
	unix, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || signatures == "" {
		return ErrNoSignature
	}
	if now.Sub(time.Unix(unix, 0)).Abs() > Tolerance {
		return ErrTooOld
	}
	for signature := range strings.SplitSeq(signatures, ",") {
		given, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(signature), "v1="))
		if err != nil {
			continue
		}
		for _, s := range secrets {
			if hmac.Equal(given, s.mac(timestamp, ".", string(body))) {
				return nil
			}
		}
	}
	return ErrBadSignature
}
