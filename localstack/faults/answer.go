package faults

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
)

// answer writes an AWS error in the protocol of the call's service.
func answer(w http.ResponseWriter, c Call, e Error) {
	status := http.StatusBadRequest
	switch e {
	case InternalServerError:
		status = http.StatusInternalServerError
	case SlowDown:
		status = http.StatusServiceUnavailable
	}
	if c.Service == S3 {
		answerXML(w, status, e)
		return
	}
	namespace := map[string]string{DynamoDB: "com.amazonaws.dynamodb.v20120810#", SQS: "com.amazonaws.sqs#"}[c.Service]
	body := map[string]any{"__type": namespace + string(e), "message": "injected: " + string(e)}
	if e == TransactionCanceled {
		body["CancellationReasons"] = reasons(c.Body)
	}
	if c.Service == SQS {
		w.Header().Set("X-Amzn-Query-Error", string(e)+";Sender")
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and maps of strings only
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	w.Write(text) // the caller went away
}

// reasons gives TransactionConflict for the first item of a transaction and None for the others, as DynamoDB does when
// another transaction holds one item.
func reasons(body []byte) []map[string]string {
	var transaction struct{ TransactItems []json.RawMessage }
	json.Unmarshal(body, &transaction) // no items then, and one reason
	out := []map[string]string{{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}}
	for range max(len(transaction.TransactItems)-1, 0) {
		out = append(out, map[string]string{"Code": "None"})
	}
	return out
}

func answerXML(w http.ResponseWriter, status int, e Error) {
	code := string(e)
	if e == InternalServerError {
		code = "InternalError"
	}
	text, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: code, Message: "injected: " + code})
	if err != nil {
		panic(err) // two strings
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	w.Write(text) // the caller went away
}
