// Package app puts the parts together: it reads the environment once and builds what each function
// runs. It refuses to hold logic of its own, and nothing else in the product reads the environment.
package app

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"pintu/internal/job"
)

// Config is what the template tells a function about its surroundings. Every function gets all of it.
type Config struct {
	Stage            string // name of the API's stage
	ControlTable     string
	RecordsTable     string
	Bucket           string
	PlanQueueURL     string
	ProcessQueueURL  string
	ChunkBytes       int64         // target size of a chunk of an import, pinned on a job when it is planned
	PublicS3Endpoint string        // what presigned URLs are made for; empty: the endpoint of the SDK
	S3PathStyle      bool          // bucket in the path of S3 URLs; local targets need it
	URLLife          time.Duration // of presigned URLs
}

// maxURLLife is how long credentials of a function are sure to live: a URL dies with what signed it.
const maxURLLife = time.Hour

// DefaultChunkBytes is the target size of a chunk when PINTU_CHUNK_BYTES says nothing.
const DefaultChunkBytes = 8 << 20

// maxChunkBytes keeps the work on one chunk within the process function's time-out.
const maxChunkBytes = 64 << 20

// MaxReceives is how often a message is received before SQS moves it to the dead-letter queue: the
// maxReceiveCount of the template's queues.
const MaxReceives = 10

// variables lists every environment variable of ours, in the order faults are told.
var variables = []struct {
	name     string
	required bool
	set      func(*Config, string) error
}{
	{"PINTU_STAGE", true, text(func(c *Config) *string { return &c.Stage })},
	{"PINTU_CONTROL_TABLE", true, text(func(c *Config) *string { return &c.ControlTable })},
	{"PINTU_RECORDS_TABLE", true, text(func(c *Config) *string { return &c.RecordsTable })},
	{"PINTU_BUCKET", true, text(func(c *Config) *string { return &c.Bucket })},
	{"PINTU_PLAN_QUEUE_URL", true, address(func(c *Config) *string { return &c.PlanQueueURL })},
	{"PINTU_PROCESS_QUEUE_URL", true, address(func(c *Config) *string { return &c.ProcessQueueURL })},
	{"PINTU_CHUNK_BYTES", false, setChunkBytes},
	{"PINTU_PUBLIC_S3_ENDPOINT", false, address(func(c *Config) *string { return &c.PublicS3Endpoint })},
	{"PINTU_S3_PATH_STYLE", false, setPathStyle},
	{"PINTU_URL_SECONDS", false, setURLLife},
}

// Variables names every environment variable that ReadConfig looks at.
func Variables() []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	return names
}

// ReadConfig reads the environment through getenv. The error names every variable that is missing or
// malformed, and never shows a value.
func ReadConfig(getenv func(string) string) (Config, error) {
	c := Config{ChunkBytes: DefaultChunkBytes, URLLife: job.DefaultURLLife}
	var faults []error
	for _, v := range variables {
		value := getenv(v.name)
		switch {
		case value == "" && v.required:
			faults = append(faults, fmt.Errorf("%s is not set", v.name))
		case value != "":
			if err := v.set(&c, value); err != nil {
				faults = append(faults, fmt.Errorf("%s %w", v.name, err))
			}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return Config{}, fmt.Errorf("environment: %w", err)
	}
	return c, nil
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		*field(c) = value
		return nil
	}
}

func address(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
			return errors.New("must be an http or https URL")
		}
		*field(c) = value
		return nil
	}
}

func setChunkBytes(c *Config, value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 || n > maxChunkBytes {
		return fmt.Errorf("must be a number from 1 to %d", maxChunkBytes)
	}
	c.ChunkBytes = n
	return nil
}

func setURLLife(c *Config, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || time.Duration(n)*time.Second > maxURLLife {
		return fmt.Errorf("must be a number of seconds from 1 to %d", maxURLLife/time.Second)
	}
	c.URLLife = time.Duration(n) * time.Second
	return nil
}

func setPathStyle(c *Config, value string) error {
	switch value {
	case "true", "false":
		c.S3PathStyle = value == "true"
		return nil
	}
	return errors.New("must be true or false")
}
