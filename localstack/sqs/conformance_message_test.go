package sqs

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMessageComesBackWhole(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		attrs := map[string]types.MessageAttributeValue{
			"tenant": {DataType: aws.String("String"), StringValue: aws.String("übung")},
			"n":      {DataType: aws.String("Number.int"), StringValue: aws.String("5")},
			"raw":    {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
		}
		sent, err := e.SendMessage(e.Context(), &awssqs.SendMessageInput{
			QueueUrl: &q, MessageBody: aws.String("<b>&\u2028 \U0001F600"), MessageAttributes: attrs, MessageGroupId: aws.String("client-1"),
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
				"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5")}},
		})
		if err != nil {
			e.Fatal(err)
		}
		m := e.one(q)
		if *m.MessageId != *sent.MessageId || aws.ToString(m.MD5OfMessageAttributes) != aws.ToString(sent.MD5OfMessageAttributes) {
			e.Errorf("id or digest differ: sent %v, received %v", sent, m)
		}
		if d := cmp.Diff(attrs, m.MessageAttributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); d != "" {
			e.Error(d)
		}
		if *m.Body != "<b>&\u2028 \U0001F600" {
			e.Errorf("body %q", *m.Body)
		}
		at := m.Attributes
		if at["ApproximateReceiveCount"] != "1" || at["SenderId"] == "" || at["MessageGroupId"] != "client-1" || at["AWSTraceHeader"] != "Root=1-5" {
			e.Errorf("system attributes %v", at)
		}
		for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
			if ms, err := strconv.ParseInt(at[name], 10, 64); err != nil || time.Since(time.UnixMilli(ms)).Abs() > time.Minute {
				e.Errorf("%s is %q", name, at[name])
			}
		}
	})
}

func TestAttributeDigest(t *testing.T) {
	// Both digests were recorded on AWS.
	cases := []struct {
		want  string
		attrs map[string]attribute
	}{
		{"4c360f3fdafd970e05fae2f149d997f5", map[string]attribute{
			"Help.Me": {DataType: "String", StringValue: "Me"},
			"Hello":   {DataType: "String", StringValue: "There"},
			"General": {DataType: "String", StringValue: "Kenobi"},
		}},
		{"8cbe4db156db8a94db8b801b7addb984", map[string]attribute{
			"attr1": {DataType: "Binary", BinaryValue: []byte("traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01")},
		}},
		{"", nil},
	}
	for _, c := range cases {
		if got := md5OfAttributes(c.attrs); got != c.want {
			t.Errorf("digest of %v is %q, want %q", c.attrs, got, c.want)
		}
	}
}

func TestOnlyAskedAttributesComeBack(t *testing.T) {
	str := func(v string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
	}
	cases := []struct {
		user, system  []string
		wantUser      string
		wantSystem    string
		viaDeprecated bool
	}{
		{nil, nil, "", "", false},
		{[]string{"All"}, []string{"SentTimestamp"}, "Hello Help.Me Other", "SentTimestamp", false},
		{[]string{".*"}, []string{"SenderId", "MessageGroupId"}, "Hello Help.Me Other", "SenderId", false},
		{[]string{"Hel.*"}, nil, "Hello Help.Me", "", false},
		{[]string{"Hello", "None"}, []string{"SenderId"}, "Hello", "SenderId", true},
	}
	conform(t, func(e *env) {
		for i, c := range cases {
			q := e.queue(fmt.Sprint(i), nil)
			_, err := e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("x"),
				MessageAttributes: map[string]types.MessageAttributeValue{"Hello": str("1"), "Help.Me": str("2"), "Other": str("3")}})
			if err != nil {
				e.Fatal(err)
			}
			in := &awssqs.ReceiveMessageInput{QueueUrl: &q, MessageAttributeNames: c.user}
			for _, name := range c.system {
				if c.viaDeprecated {
					//lint:ignore SA1019 older clients still ask by this name
					in.AttributeNames = append(in.AttributeNames, types.QueueAttributeName(name))
				} else {
					in.MessageSystemAttributeNames = append(in.MessageSystemAttributeNames, types.MessageSystemAttributeName(name))
				}
			}
			out, err := e.ReceiveMessage(e.Context(), in)
			if err != nil || len(out.Messages) != 1 {
				e.Fatalf("case %d: %v, %v", i, out, err)
			}
			m := out.Messages[0]
			if got := keys(m.MessageAttributes); got != c.wantUser {
				e.Errorf("case %d: message attributes %q, want %q", i, got, c.wantUser)
			}
			if got := keys(m.Attributes); got != c.wantSystem {
				e.Errorf("case %d: system attributes %q, want %q", i, got, c.wantSystem)
			}
		}
	})
}

func keys[V any](m map[string]V) string {
	var out []string
	for _, k := range []string{"Hello", "Help.Me", "Other", "SenderId", "SentTimestamp", "ApproximateReceiveCount", "MessageGroupId"} {
		if _, ok := m[k]; ok {
			out = append(out, k)
		}
	}
	return strings.Join(out, " ")
}

func TestBadMessagesAreRefused(t *testing.T) {
	attr := func(kind, value string) map[string]types.MessageAttributeValue {
		return map[string]types.MessageAttributeValue{"a": {DataType: &kind, StringValue: &value}}
	}
	many := map[string]types.MessageAttributeValue{}
	for i := range 11 {
		many[fmt.Sprint("a", i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("x")}
	}
	cases := []struct {
		name string
		code string
		in   awssqs.SendMessageInput
	}{
		{"an empty body", "MissingParameter", awssqs.SendMessageInput{MessageBody: aws.String("")}},
		{"a zero byte", "InvalidMessageContents", awssqs.SendMessageInput{MessageBody: aws.String("a\x00")}},
		{"a noncharacter", "InvalidMessageContents", awssqs.SendMessageInput{MessageBody: aws.String("\ufffe")}},
		{"more than 1 MiB", "InvalidParameterValue", awssqs.SendMessageInput{MessageBody: aws.String(strings.Repeat("x", maxMessage+1))}},
		{"1 MiB with attributes", "InvalidParameterValue", awssqs.SendMessageInput{MessageBody: aws.String(strings.Repeat("x", maxMessage-7)), MessageAttributes: attr("String", "x")}},
		{"a delay of 901", "InvalidParameterValue", awssqs.SendMessageInput{DelaySeconds: 901}},
		{"an unknown type", "InvalidParameterValue", awssqs.SendMessageInput{MessageAttributes: attr("Date", "1")}},
		{"a number that is none", "InvalidParameterValue", awssqs.SendMessageInput{MessageAttributes: attr("Number", "x")}},
		{"an empty value", "InvalidParameterValue", awssqs.SendMessageInput{MessageAttributes: attr("String", "")}},
		{"eleven attributes", "InvalidParameterValue", awssqs.SendMessageInput{MessageAttributes: many}},
		{"a group with a space", "InvalidParameterValue", awssqs.SendMessageInput{MessageGroupId: aws.String("a b")}},
		{"a group of 129", "InvalidParameterValue", awssqs.SendMessageInput{MessageGroupId: aws.String(strings.Repeat("g", 129))}},
		{"a deduplication id on a standard queue", "InvalidParameterValue", awssqs.SendMessageInput{MessageDeduplicationId: aws.String("d")}},
	}
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		for _, c := range cases {
			c.in.QueueUrl = &q
			if c.in.MessageBody == nil {
				c.in.MessageBody = aws.String("x")
			}
			_, err := e.SendMessage(e.Context(), &c.in)
			e.refused(err, c.code, "send "+c.name)
		}
		if got := e.counts(q); got != "0/0/0" {
			e.Errorf("refused messages are in the queue: %s", got)
		}
	})
}

func TestMessageOfOneMebibyteFits(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		e.send(q, strings.Repeat("\x7f", maxMessage))
		if m := e.one(q); len(*m.Body) != maxMessage {
			e.Errorf("came back with %d bytes", len(*m.Body))
		}
		small := e.queue("small", map[string]string{"MaximumMessageSize": "1024"})
		_, err := e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &small, MessageBody: aws.String(strings.Repeat("x", 1025))})
		e.refused(err, "InvalidParameterValue", "send more than the queue takes")
	})
}

func entries(bodies ...string) []types.SendMessageBatchRequestEntry {
	var out []types.SendMessageBatchRequestEntry
	for i, b := range bodies {
		out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint("m", i)), MessageBody: &b})
	}
	return out
}

func TestSendBatch(t *testing.T) {
	twice := entries("a", "b")
	twice[1].Id = twice[0].Id
	odd := entries("a")
	odd[0].Id = aws.String("a:b")
	cases := []struct {
		name, code string
		entries    []types.SendMessageBatchRequestEntry
	}{
		{"no entries", "AWS.SimpleQueueService.EmptyBatchRequest", []types.SendMessageBatchRequestEntry{}},
		{"eleven entries", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", entries(strings.Split("abcdefghijk", "")...)},
		{"an id twice", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", twice},
		{"an odd id", "AWS.SimpleQueueService.InvalidBatchEntryId", odd},
		{"more than 1 MiB", "AWS.SimpleQueueService.BatchRequestTooLong", entries(strings.Repeat("x", maxMessage/2), strings.Repeat("y", maxMessage/2+1))},
	}
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		for _, c := range cases {
			_, err := e.SendMessageBatch(e.Context(), &awssqs.SendMessageBatchInput{QueueUrl: &q, Entries: c.entries})
			e.refused(err, c.code, "send a batch with "+c.name)
		}
		mixed := entries("good", "bad\x01", "late")
		mixed[2].DelaySeconds = 901
		out, err := e.SendMessageBatch(e.Context(), &awssqs.SendMessageBatchInput{QueueUrl: &q, Entries: mixed})
		if err != nil || len(out.Successful) != 1 || len(out.Failed) != 2 {
			e.Fatalf("mixed batch: %v, %v", out, err)
		}
		first, second := out.Failed[0], out.Failed[1]
		if *first.Id != "m1" || *first.Code != "InvalidMessageContents" || !first.SenderFault || *second.Id != "m2" || *second.Code != "InvalidParameterValue" {
			e.Errorf("failed entries %v", out.Failed)
		}
		if got := bodies(e.receive(q, 0)); got != "good" {
			e.Errorf("received %q", got)
		}
	})
}

func TestDeleteAndVisibilityBatch(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		e.send(q, "1", "2", "3")
		ms := e.receive(q, 0)
		del, err := e.DeleteMessageBatch(e.Context(), &awssqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("ok"), ReceiptHandle: ms[0].ReceiptHandle}, {Id: aws.String("junk"), ReceiptHandle: aws.String("junk")}}})
		if err != nil || len(del.Successful) != 1 || len(del.Failed) != 1 || *del.Failed[0].Code != "ReceiptHandleIsInvalid" {
			e.Errorf("delete batch: %v, %v", del, err)
		}
		vis, err := e.ChangeMessageVisibilityBatch(e.Context(), &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("ok"), ReceiptHandle: ms[1].ReceiptHandle, VisibilityTimeout: 0},
			{Id: aws.String("long"), ReceiptHandle: ms[2].ReceiptHandle, VisibilityTimeout: 43201}}})
		if err != nil || len(vis.Successful) != 1 || len(vis.Failed) != 1 || *vis.Failed[0].Code != "InvalidParameterValue" {
			e.Errorf("visibility batch: %v, %v", vis, err)
		}
		if got := e.counts(q); got != "1/1/0" {
			e.Errorf("left %s, want 1/1/0", got)
		}
	})
}
