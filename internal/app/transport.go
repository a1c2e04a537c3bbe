package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
)

// answerTimeout bounds how long a service may take to begin its answer. Reading a long answer is bounded
// by the invocation.
const answerTimeout = 20 * time.Second

// idleConnections are kept open per service: as many as one worker has rows in flight, and some more. The
// SDK's own 10 would open a connection for most rows.
const idleConnections = 64

// awsConfig takes region, credentials and endpoint from the environment, as the SDK reads them.
func awsConfig(ctx context.Context) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost = answerTimeout, idleConnections
	})
	c, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w", err)
	}
	// Last: the SDK refuses to add the certificates of AWS_CA_BUNDLE to a client that is not its own.
	c.HTTPClient = wholeBodies{c.HTTPClient}
	return c, nil
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
