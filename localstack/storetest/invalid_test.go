package storetest

import (
	"strings"
	"testing"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/idempotency"
	"pintu/internal/importer"
	"pintu/internal/job"
)

// Reported: a row that DynamoDB found invalid was sent again until its worker's time was up, ten times over,
// because every error of the store passed for a hiccup.
func TestWhatDynamoDBFindsInvalidIsNotTransient(t *testing.T) {
	store := New(t)
	tooLong := strings.Repeat("k", 1025)
	_, _, err := store.WriteRecord(t.Context(), importer.Write{Tenant: "acme", Dataset: "pairs", Key: tooLong, Epoch: 1, Row: 1,
		Fields: []string{"k"}, Values: []dataset.Value{{Kind: dataset.String, Text: []byte(tooLong)}}}, importer.Apply, importer.Register{})
	if err == nil || fault.Is(err, fault.DependencyUnavailable) {
		t.Errorf("a plain write: %v", err)
	}
	caller := access.Caller{Tenant: "acme", Client: strings.Repeat("c", 2049), Limits: access.DefaultLimits()}
	err = store.CreateJob(t.Context(), caller, idempotency.Intent{Key: "k"}, job.Job{Tenant: "acme", ID: "job_1", Client: "loader"}, "")
	if err == nil || fault.Is(err, fault.DependencyUnavailable) {
		t.Errorf("a transaction: %v", err)
	}
}
