// Package webhook is what happens when a job has ended and its submitter wants to be told: the event, the
// secrets that sign it, one try to send it, and what is decided from how the try went. Bytes are made once and
// never again; every rule takes the time and the random part as arguments. The package stores nothing, waits
// for nothing, and refuses to send anywhere but through netguard.
package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"pintu/internal/id"
)

// EventID identifies one event for ever: "evt_" and a ULID. Receivers drop what they have seen by it.
type EventID string

// DeliveryID identifies the way of one event to one URL: "dlv_" and a ULID.
type DeliveryID string

const (
	eventPrefix    = "evt_"
	deliveryPrefix = "dlv_"
)

// ParseDeliveryID checks the form of a delivery id.
func ParseDeliveryID(s string) (_ DeliveryID, ok bool) {
	rest, found := strings.CutPrefix(s, deliveryPrefix)
	u, err := ulid.ParseStrict(rest)
	return DeliveryID(s), found && err == nil && u.String() == rest
}

// TestEventType is the type of an event that somebody asked for to try a receiver out. Its job is null.
const TestEventType = "webhook.test"

// JobEventType is the type of the event of a job's end, however it ended: the job's status says how.
func JobEventType(kind string) string { return kind + ".job.completed" }

// Event is what a receiver is told. Its body is marshalled here and nowhere else: it is stored, signed and sent
// as these bytes, since a second marshalling may write the same value in other bytes.
type Event struct {
	ID     EventID
	Type   string
	JobID  id.Job // empty for a test event
	SentAt time.Time
	Body   []byte
}

// JobEvent makes the event of a job's end. job is the job object of the API at that moment. The id is that of
// the job with another prefix, so that a job has one event however often its end is tried.
func JobEvent(jobID id.Job, kind string, job json.RawMessage, at time.Time) (Event, error) {
	e := Event{ID: EventID(eventPrefix + ulidOf(jobID)), Type: JobEventType(kind), JobID: jobID, SentAt: at}
	return e.marshal(job)
}

// TestEvent makes an event that tells nothing.
func TestEvent(at time.Time) (Event, error) {
	e := Event{ID: EventID(eventPrefix + newULID(at)), Type: TestEventType, SentAt: at}
	return e.marshal(json.RawMessage("null"))
}

func (e Event) marshal(job json.RawMessage) (Event, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // receivers that marshal again before they verify would not write \u0026
	err := enc.Encode(struct {
		EventID   EventID         `json:"event_id"`
		EventType string          `json:"event_type"`
		SentAt    string          `json:"sent_at"`
		Job       json.RawMessage `json:"job"`
	}{e.ID, e.Type, e.SentAt.UTC().Format(time.RFC3339), job})
	if err != nil {
		return Event{}, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	e.Body = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return e, nil
}

func ulidOf(jobID id.Job) string { return strings.TrimPrefix(string(jobID), "job_") }

func newULID(at time.Time) string {
	return ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String()
}
