package webhook

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"pintu/internal/id"
)

var (
	noon  = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	jobID = id.NewJob(noon)
)

// awkward is a job object that marshalling twice would write in other bytes.
const awkward = `{"b":1,"a":"<&>é☃\u2028","n":12345678901234567890.10}`

func jobEvent(t *testing.T) Event {
	t.Helper()
	e, err := JobEvent(jobID, "import", json.RawMessage(awkward), noon)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestJobEventKeepsTheBytesOfTheJob(t *testing.T) {
	e := jobEvent(t)
	want := `{"event_id":"evt_` + string(jobID[4:]) + `","event_type":"import.job.completed","sent_at":"2026-07-27T12:00:00Z","job":` + awkward + `}`
	if string(e.Body) != want {
		t.Errorf("got  %s\nwant %s", e.Body, want)
	}
	if again := jobEvent(t); string(again.Body) != string(e.Body) || again.ID != e.ID {
		t.Error("the end of one job made two events")
	}
}

func TestJobEventRefusesWhatIsNoJSON(t *testing.T) {
	if _, err := JobEvent(jobID, "import", json.RawMessage(`{"a":`), noon); err == nil {
		t.Error("half a job was taken")
	}
}

func TestTestEventTellsNothing(t *testing.T) {
	e, err := TestEvent(noon)
	if err != nil {
		t.Fatal(err)
	}
	other, err := TestEvent(noon)
	if err != nil || other.ID == e.ID {
		t.Errorf("two test events are both %s (%v)", e.ID, err)
	}
	want := `{"event_id":"` + string(e.ID) + `","event_type":"webhook.test","sent_at":"2026-07-27T12:00:00Z","job":null}`
	if string(e.Body) != want {
		t.Errorf("got %s", e.Body)
	}
	if d := NewDelivery("acme", "https://example.com/", "", e); d.ID != DeliveryID("dlv_"+e.ID[4:]) || d.JobID != "" {
		t.Errorf("delivery %s of event %s", d.ID, e.ID)
	}
}

func TestParseDeliveryID(t *testing.T) {
	made := "dlv_" + ulid.Make().String()
	if got, ok := ParseDeliveryID(made); !ok || string(got) != made {
		t.Errorf("ParseDeliveryID(%q) = %q, %v", made, got, ok)
	}
	for _, bad := range []string{"", "dlv_", made[4:], "evt_" + made[4:], made + "0", "dlv_" + "01arz3ndektsv4rrffq69g5fav"} {
		if _, ok := ParseDeliveryID(bad); ok {
			t.Errorf("ParseDeliveryID(%q) accepted", bad)
		}
	}
}
