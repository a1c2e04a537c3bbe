package ddb

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// apiError is an answer other than 200. Its code is the SDK's exception name.
type apiError struct {
	status  int // 0 means 400
	code    string
	message string
	item    item     // ConditionalCheckFailedException with ReturnValuesOnConditionCheckFailure
	reasons []reason // TransactionCanceledException
}

// reason says what one operation of a cancelled transaction met. Code None means that it was in order.
type reason struct {
	code    string
	message string
	item    item
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func invalid(format string, args ...any) *apiError {
	return &apiError{code: "ValidationException", message: fmt.Sprintf(format, args...)}
}

// invalidValue is a ValidationException about parameter values, with DynamoDB's usual opening words.
func invalidValue(format string, args ...any) *apiError {
	return invalid("One or more parameter values were invalid: "+format, args...)
}

func serializationError(message string) *apiError {
	return &apiError{code: "SerializationException", message: message}
}

func noSuchTable() *apiError {
	return &apiError{code: "ResourceNotFoundException", message: "Requested resource not found"}
}

func noSuchTableNamed(name string) *apiError {
	return &apiError{code: "ResourceNotFoundException", message: "Requested resource not found: Table: " + name + " not found"}
}

func conditionFailed(old item) *apiError {
	return &apiError{code: "ConditionalCheckFailedException", message: "The conditional request failed", item: old}
}

// namespaces of error codes on the wire; everything else is DynamoDB's own.
var coralCodes = map[string]string{
	"ValidationException":       "com.amazon.coral.validate#",
	"SerializationException":    "com.amazon.coral.service#",
	"UnknownOperationException": "com.amazon.coral.service#",
	"InternalServerError":       "com.amazonaws.dynamodb.v20120810#",
}

// errorReply turns an error into status and body. Errors that are not the caller's become InternalServerError.
func errorReply(err error) (int, []byte) {
	var api *apiError
	if !errors.As(err, &api) {
		api = &apiError{status: http.StatusInternalServerError, code: "InternalServerError", message: err.Error()}
	}
	status := api.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	ns, ok := coralCodes[api.code]
	if !ok {
		ns = "com.amazonaws.dynamodb.v20120810#"
	}
	r := newReply()
	r.text("__type", ns+api.code)
	messageKey := "message"
	if api.reasons != nil {
		messageKey = "Message"
		r.reasons(api.reasons)
	}
	if api.message != "" {
		r.text(messageKey, api.message)
	}
	if api.item != nil {
		r.item("Item", api.item)
	}
	return status, r.done()
}

func (r *reply) reasons(list []reason) {
	r.key("CancellationReasons")
	r.b = append(r.b, '[')
	for i, one := range list {
		if i > 0 {
			r.b = append(r.b, ',')
		}
		sub := reply{b: append(r.b, '{'), first: true}
		sub.text("Code", one.code)
		if one.message != "" {
			sub.text("Message", one.message)
		}
		if one.item != nil {
			sub.item("Item", one.item)
		}
		r.b = append(sub.b, '}')
	}
	r.b = append(r.b, ']')
}

// reply builds one JSON object by appending; it exists because a page of items is up to 1 MB and encoding/json would scan
// it twice more.
type reply struct {
	b     []byte
	first bool
}

func newReply() *reply { return &reply{b: append(make([]byte, 0, 512), '{'), first: true} }

func (r *reply) key(name string) {
	if !r.first {
		r.b = append(r.b, ',')
	}
	r.first = false
	r.b = append(r.b, '"')
	r.b = append(r.b, name...)
	r.b = append(r.b, '"', ':')
}

func (r *reply) text(name, value string) {
	r.key(name)
	r.b = appendString(r.b, value)
}

func (r *reply) item(name string, it item) {
	r.key(name)
	r.b = appendObject(r.b, it)
}

func (r *reply) items(name string, list []item) {
	r.key(name)
	r.b = append(r.b, '[')
	for i, it := range list {
		if i > 0 {
			r.b = append(r.b, ',')
		}
		r.b = appendObject(r.b, it)
	}
	r.b = append(r.b, ']')
}

// json adds a field encoded by encoding/json, for what is small and rare.
func (r *reply) json(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	r.key(name)
	r.b = append(r.b, b...)
	return nil
}

func (r *reply) done() []byte { return append(r.b, '}') }
