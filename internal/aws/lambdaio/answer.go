package lambdaio

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// maxAnswer is what one invocation can return (6 MB), less room for status and headers. It bounds the
// body as it stands in the JSON of the reply, where every quote is escaped once more.
const maxAnswer = 6<<20 - 64<<10

// answer is the http.ResponseWriter of one request. A handler that writes nothing has answered 200.
type answer struct {
	header http.Header
	sent   http.Header // header as it was at WriteHeader
	status int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}} }

func (a *answer) Header() http.Header { return a.header }

// WriteHeader keeps the first final status. Informational ones have no place in the reply.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status, a.sent = status, a.header.Clone()
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// response makes the reply to Lambda. bounded is false when the body is larger than can be returned.
func (a *answer) response(method string) (_ events.APIGatewayProxyResponse, bounded bool) {
	a.WriteHeader(http.StatusOK)
	out := events.APIGatewayProxyResponse{StatusCode: a.status, MultiValueHeaders: a.sent}
	if method == http.MethodHead {
		return out, true
	}
	if utf8.Valid(a.body.Bytes()) {
		out.Body = a.body.String()
		return out, jsonLen(a.body.Bytes()) <= maxAnswer
	}
	out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(a.body.Bytes()), true
	return out, len(out.Body) <= maxAnswer
}

// jsonLen is the length of valid UTF-8 as encoding/json writes it into a string.
func jsonLen(b []byte) int {
	n := len(b)
	for i, c := range b {
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < 0x20, c == '<', c == '>', c == '&':
			n += 5
		case c == 0xe2 && i+2 < len(b) && b[i+1] == 0x80 && b[i+2]&^1 == 0xa8: // U+2028, U+2029
			n += 3
		}
	}
	return n
}
