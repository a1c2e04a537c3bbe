package sqs

import (
	"encoding/json"
	"maps"
	"regexp"
	"strconv"
	"time"
)

// settings are the attributes of a queue that decide something, parsed.
type settings struct {
	visibility, delay, retention, wait time.Duration
	maxSize                            int
	fifo, contentDedup, dedupPerGroup  bool
	redrive                            *redrivePolicy
	allow                              redriveAllowPolicy
}

type redrivePolicy struct {
	Target   string `json:"deadLetterTargetArn"`
	Receives count  `json:"maxReceiveCount"`
}

type redriveAllowPolicy struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns"`
}

// count is a number that CloudFormation and others also send as a string.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.Atoi(string(trimQuotes(b)))
	*c = count(n)
	return err
}

func trimQuotes(b []byte) []byte {
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		return b[1 : len(b)-1]
	}
	return b
}

// numbers are the numeric attributes with the range and default of the API reference; times are seconds.
var numbers = map[string]struct{ low, high, preset int }{
	"VisibilityTimeout":             {0, 43200, 30},
	"DelaySeconds":                  {0, 900, 0},
	"MessageRetentionPeriod":        {60, 1209600, 345600},
	"ReceiveMessageWaitTimeSeconds": {0, 20, 0},
	"MaximumMessageSize":            {1024, maxMessage, maxMessage},
	"KmsDataKeyReusePeriodSeconds":  {60, 86400, 300},
}

// choices are the attributes with a fixed set of values, the first being the default.
var choices = map[string][]string{
	"FifoQueue":                 {"false", "true"},
	"ContentBasedDeduplication": {"false", "true"},
	"SqsManagedSseEnabled":      {"true", "false"},
	"DeduplicationScope":        {"queue", "messageGroup"},
	"FifoThroughputLimit":       {"perQueue", "perMessageGroupId"},
}

// fifoOnly are shown for FIFO queues alone.
var fifoOnly = map[string]bool{
	"FifoQueue": true, "ContentBasedDeduplication": true, "DeduplicationScope": true, "FifoThroughputLimit": true,
}

// texts are kept and shown, but for the redrive policies nothing here acts on them.
var texts = map[string]bool{"Policy": true, "KmsMasterKeyId": true, "RedrivePolicy": true, "RedriveAllowPolicy": true}

// withDefaults completes the attributes that were set explicitly.
func withDefaults(explicit map[string]string) map[string]string {
	all := map[string]string{}
	for name, n := range numbers {
		if name != "KmsDataKeyReusePeriodSeconds" || explicit["KmsMasterKeyId"] != "" {
			all[name] = strconv.Itoa(n.preset)
		}
	}
	for name, values := range choices {
		if !fifoOnly[name] || explicit["FifoQueue"] == "true" {
			all[name] = values[0]
		}
	}
	maps.Copy(all, explicit)
	return all
}

// checkAttribute refuses names that do not exist or cannot be set, and values out of range.
func checkAttribute(name, value string) error {
	if n, ok := numbers[name]; ok {
		v, err := strconv.Atoi(value)
		if err != nil || v < n.low || v > n.high {
			return invalidAttribute(name)
		}
		return nil
	}
	if values, ok := choices[name]; ok {
		for _, v := range values {
			if v == value {
				return nil
			}
		}
		return invalidAttribute(name)
	}
	if !texts[name] {
		return unknownAttribute(name)
	}
	return nil
}

// parseSettings checks attributes and reads them. Whether a dead-letter queue exists is checked by the caller.
func parseSettings(explicit map[string]string) (settings, error) {
	for name, value := range explicit {
		if err := checkAttribute(name, value); err != nil {
			return settings{}, err
		}
	}
	all := withDefaults(explicit)
	seconds := func(name string) time.Duration {
		n, _ := strconv.Atoi(all[name]) // checked above
		return time.Duration(n) * time.Second
	}
	size, _ := strconv.Atoi(all["MaximumMessageSize"])
	set := settings{
		visibility:    seconds("VisibilityTimeout"),
		delay:         seconds("DelaySeconds"),
		retention:     seconds("MessageRetentionPeriod"),
		wait:          seconds("ReceiveMessageWaitTimeSeconds"),
		maxSize:       size,
		fifo:          all["FifoQueue"] == "true",
		contentDedup:  all["ContentBasedDeduplication"] == "true",
		dedupPerGroup: all["DeduplicationScope"] == "messageGroup",
		allow:         redriveAllowPolicy{Permission: "allowAll"},
	}
	return set, set.parsePolicies(all["RedrivePolicy"], all["RedriveAllowPolicy"])
}

func (set *settings) parsePolicies(redrive, allow string) error {
	if redrive != "" {
		p := &redrivePolicy{Receives: 10}
		if err := json.Unmarshal([]byte(redrive), p); err != nil || p.Receives < 1 || p.Receives > 1000 {
			return badRedrive(redrive, "It must be JSON with deadLetterTargetArn and a maxReceiveCount from 1 to 1000")
		}
		set.redrive = p
	}
	if allow != "" {
		err := json.Unmarshal([]byte(allow), &set.allow)
		p, sources := set.allow.Permission, len(set.allow.Sources)
		known := p == "allowAll" || p == "denyAll" || p == "byQueue"
		if err != nil || !known || (p == "byQueue") != (sources > 0) || sources > 10 {
			return invalidParameter("Value %s for parameter RedriveAllowPolicy is invalid.", allow)
		}
	}
	return nil
}

func badRedrive(value, reason string) error {
	return invalidParameter("Value %s for parameter RedrivePolicy is invalid. Reason: %s.", value, reason)
}

// permits says whether the queue with this ARN may use the queue with these settings as its dead-letter queue.
func (set *settings) permits(sourceARN string) bool {
	switch set.allow.Permission {
	case "denyAll":
		return false
	case "byQueue":
		for _, arn := range set.allow.Sources {
			if arn == sourceARN {
				return true
			}
		}
		return false
	}
	return true
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// checkName holds a name against the rules, and its .fifo suffix against the attribute.
func checkName(name string, fifo bool) error {
	stem := name
	if fifo {
		if len(name) < 5 || name[len(name)-5:] != ".fifo" || len(name) > 80 {
			return invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
		}
		stem = name[:len(name)-5]
	}
	if !queueName.MatchString(stem) {
		return invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return nil
}
