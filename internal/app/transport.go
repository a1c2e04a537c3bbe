package app

import (
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// answerTimeout bounds how long a service may take to begin its answer. Reading a long answer is bounded
// by the invocation.
const answerTimeout = 20 * time.Second

// idleConnections are kept open per service: as many as one worker has rows in flight, and some more. The
// SDK's own 10 would open a connection for most rows.
const idleConnections = 64

// httpClient is what every call to AWS goes through.
func httpClient() aws.HTTPClient {
	return wholeBodies{awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost = answerTimeout, idleConnections
	})}
}

// wholeBodies hides everything but Read and Close of a request's body. The SDK's body answers WriteTo with
// an error once it is closed, which happens when a reply overtakes the end of its request; net/http takes
// that for a broken connection and throws the reply away with it. A fast store, such as one on this machine,
// loses replies by the percent without this.
type wholeBodies struct{ next aws.HTTPClient }

func (c wholeBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.next.Do(r)
}
