package e2e

import (
	"net/http"
	"strings"
	"testing"

	"pintu/localstack/faults"
)

// TestLogsHoldNoSecretAndNoRow runs an import with good and bad rows, refusals and a store that fails, and looks for
// what must be in no log line.
func TestLogsHoldNoSecretAndNoRow(t *testing.T) {
	s := start(t, 64, nil)
	content := []byte("k,v\nrahasia-baik,1\nrahasia-buruk,x\n\"rahasia-rusak,2\n")
	away := s.stack.Faults().Add(faults.Rule{Caller: "ProcessFunction", Operation: "UpdateItem", Action: faults.Fail, Error: faults.InternalServerError, Times: 11})
	jobID := s.begin(s.dataset("pairs"), content)
	if j := s.wait(jobID); j.text("status") != "partial" {
		t.Errorf("job: %v", j)
	}
	away.Remove()
	s.artifact(jobID, "rejected.csv")
	for _, path := range []string{"/v1/datasets/pairs/records/rahasia-baik", "/v1/datasets/pairs/records?key=rahasia-baik", "/v1/datasets/pairs/records?cursor=rahasia",
		"/v1/jobs/" + jobID + "/rows", "/v1/jobs/rahasia"} {
		s.call("GET", path, nil)
	}
	s.callAs(s.token+"x", "GET", "/v1/limits", nil)
	s.callAs("pintu_aaaaaaaaaaaaaaaa_"+strings.Repeat("rahasia", 7)+"rah", "GET", "/v1/limits", nil)
	if a := s.call("POST", "/v1/import-jobs", object{"dataset": "rahasia", "metadata": object{"rahasia": 1}}, "Idempotency-Key", "rahasia"); a.status != http.StatusBadRequest {
		t.Errorf("submit: %d %v", a.status, a.body)
	}
	log := s.log.String()
	secret := s.token[strings.LastIndex(s.token, "_")+1:]
	for name, text := range map[string]string{"a value of a row": "rahasia", "a token": secret, "a signature": "X-Amz-Signature", "a session": "X-Amz-Security-Token", "a key of the store": "pintu-local-secret"} {
		if strings.Contains(log, text) {
			t.Errorf("the log holds %s", name)
		}
	}
	if !strings.Contains(log, jobID) {
		t.Error("the log does not even name the job")
	}
	s.audit()
}
