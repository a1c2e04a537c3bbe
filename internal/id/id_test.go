package id

import (
	"strings"
	"testing"
	"time"
)

func TestParseJob(t *testing.T) {
	made := NewJob(time.UnixMilli(1_800_000_000_000))
	if got, ok := ParseJob(string(made)); !ok || got != made {
		t.Fatalf("ParseJob(%q) = %q, %v", made, got, ok)
	}
	for _, bad := range []string{"", "job_", "job_1", "evt_" + string(made[4:]), strings.ToLower(string(made)), string(made) + "0", "job_8ZZZZZZZZZZZZZZZZZZZZZZZZZ"} {
		if _, ok := ParseJob(bad); ok {
			t.Errorf("ParseJob(%q) accepted", bad)
		}
	}
}
