package app

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func complete() map[string]string {
	return map[string]string{
		"PINTU_STAGE":             "prod",
		"PINTU_CONTROL_TABLE":     "control",
		"PINTU_RECORDS_TABLE":     "records",
		"PINTU_BUCKET":            "bucket",
		"PINTU_PLAN_QUEUE_URL":    "https://sqs.test/1/plan",
		"PINTU_PROCESS_QUEUE_URL": "https://sqs.test/1/process",
	}
}

func read(env map[string]string) (Config, error) {
	return ReadConfig(func(name string) string { return env[name] })
}

func TestConfigHasDefaults(t *testing.T) {
	got, err := read(complete())
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Stage: "prod", ControlTable: "control", RecordsTable: "records", Bucket: "bucket",
		PlanQueueURL: "https://sqs.test/1/plan", ProcessQueueURL: "https://sqs.test/1/process", ChunkBytes: 8388608, URLLife: 15 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConfigTakesSettings(t *testing.T) {
	env := complete()
	maps.Copy(env, map[string]string{"PINTU_CHUNK_BYTES": "16", "PINTU_PUBLIC_S3_ENDPOINT": "http://127.0.0.1:9000", "PINTU_S3_PATH_STYLE": "true"})
	got, err := read(env)
	if err != nil {
		t.Fatal(err)
	}
	if got.ChunkBytes != 16 || got.PublicS3Endpoint != "http://127.0.0.1:9000" || !got.S3PathStyle {
		t.Errorf("got %+v", got)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	env := complete()
	delete(env, "PINTU_BUCKET")
	maps.Copy(env, map[string]string{"PINTU_CONTROL_TABLE": "", "PINTU_PLAN_QUEUE_URL": "plan", "PINTU_CHUNK_BYTES": "8MiB", "PINTU_S3_PATH_STYLE": "yes"})
	_, err := read(env)
	want := `environment: PINTU_CONTROL_TABLE is not set
PINTU_BUCKET is not set
PINTU_PLAN_QUEUE_URL must be an http or https URL
PINTU_CHUNK_BYTES must be a number from 1 to 67108864
PINTU_S3_PATH_STYLE must be true or false`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestConfigRefusesChunkSizesOutOfBounds(t *testing.T) {
	for _, size := range []string{"0", "-1", "67108865", "1e6", " 16"} {
		env := complete()
		env["PINTU_CHUNK_BYTES"] = size
		if _, err := read(env); err == nil {
			t.Errorf("PINTU_CHUNK_BYTES=%q was taken", size)
		}
	}
}
