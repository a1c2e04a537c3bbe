package faults

import (
	"net/http"
	"strings"
)

// Services as rules and counters name them.
const (
	DynamoDB = "dynamodb"
	SQS      = "sqs"
	S3       = "s3"
)

// Call is one request at the AWS endpoint.
type Call struct {
	Service   string
	Operation string // UpdateItem, SendMessage, PutObject, …
	Caller    string // app id of the User-Agent, such as ProcessFunction-3; empty for callers without one
	Path      string // of the URL: bucket and key of S3 calls
	Body      []byte // of DynamoDB and SQS calls; nil for S3
}

// Service tells which service a request is for: the JSON services name their operation in a header, the rest is S3.
func Service(r *http.Request) string {
	target := r.Header.Get("X-Amz-Target")
	switch {
	case strings.HasPrefix(target, "DynamoDB_"):
		return DynamoDB
	case strings.HasPrefix(target, "AmazonSQS."):
		return SQS
	}
	return S3
}

// read classifies a request; Body is not filled.
func read(r *http.Request) Call {
	c := Call{Service: Service(r), Caller: caller(r.UserAgent()), Path: r.URL.Path}
	if c.Service == S3 {
		c.Operation = s3Operation(r)
		return c
	}
	_, c.Operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return c
}

// caller finds the app id the SDK puts into its User-Agent when AWS_SDK_UA_APP_ID is set.
func caller(userAgent string) string {
	for field := range strings.FieldsSeq(userAgent) {
		if id, ok := strings.CutPrefix(field, "app/"); ok {
			return id
		}
	}
	return ""
}

// s3Operation names an S3 request by what tells S3's operations apart: method, depth of the path, and query.
func s3Operation(r *http.Request) string {
	query := r.URL.Query()
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if key == "" {
		return bucketOperation(r.Method, query.Has("list-type"), query.Has("delete"))
	}
	multipart := query.Has("uploadId")
	switch r.Method {
	case http.MethodPut:
		switch {
		case multipart:
			return "UploadPart"
		case r.Header.Get("X-Amz-Copy-Source") != "":
			return "CopyObject"
		}
		return "PutObject"
	case http.MethodPost:
		if multipart {
			return "CompleteMultipartUpload"
		}
		return "CreateMultipartUpload"
	case http.MethodDelete:
		if multipart {
			return "AbortMultipartUpload"
		}
		return "DeleteObject"
	case http.MethodHead:
		return "HeadObject"
	}
	if multipart {
		return "ListParts"
	}
	return "GetObject"
}

func bucketOperation(method string, list, remove bool) string {
	switch {
	case list:
		return "ListObjectsV2"
	case remove:
		return "DeleteObjects"
	case method == http.MethodHead:
		return "HeadBucket"
	case method == http.MethodPost:
		return "PostObject"
	}
	return "Bucket" + method
}
