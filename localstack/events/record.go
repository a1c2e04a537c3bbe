package events

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// record is a message as an SQS event carries it.
type record struct {
	MessageID  string               `json:"messageId"`
	Handle     string               `json:"receiptHandle"`
	Body       string               `json:"body"`
	Attributes map[string]string    `json:"attributes"`
	Custom     map[string]attribute `json:"messageAttributes"`
	MD5        string               `json:"md5OfBody"`
	Source     string               `json:"eventSource"`
	SourceARN  string               `json:"eventSourceARN"`
	Region     string               `json:"awsRegion"`
}

type attribute struct {
	String  *string  `json:"stringValue,omitempty"`
	Binary  []byte   `json:"binaryValue,omitempty"`
	Strings []string `json:"stringListValues"` // always empty
	Blobs   [][]byte `json:"binaryListValues"` // always empty
	Type    string   `json:"dataType"`
}

// event makes an SQS event of a batch.
func (s *Source) event(batch []types.Message) map[string][]record {
	records := make([]record, 0, len(batch))
	for _, m := range batch {
		r := record{
			MessageID: aws.ToString(m.MessageId), Handle: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body), MD5: aws.ToString(m.MD5OfBody),
			Attributes: m.Attributes, Custom: map[string]attribute{}, Source: "aws:sqs", SourceARN: s.Mapping.QueueARN, Region: s.Region,
		}
		for name, v := range m.MessageAttributes {
			r.Custom[name] = attribute{String: v.StringValue, Binary: v.BinaryValue, Strings: []string{}, Blobs: [][]byte{}, Type: aws.ToString(v.DataType)}
		}
		records = append(records, r)
	}
	return map[string][]record{"Records": records}
}
