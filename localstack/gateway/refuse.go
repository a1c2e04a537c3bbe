package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"pintu/localstack/template"
)

// refusal is a gateway response type with what AWS answers when a template does not say otherwise.
type refusal struct {
	kind    string
	status  int
	message string
}

var (
	missingToken       = refusal{"MISSING_AUTHENTICATION_TOKEN", http.StatusForbidden, "Missing Authentication Token"} // no such resource or method
	requestTooLarge    = refusal{"REQUEST_TOO_LARGE", http.StatusRequestEntityTooLarge, "Request Too Long"}
	integrationTimeout = refusal{"INTEGRATION_TIMEOUT", http.StatusGatewayTimeout, "Endpoint request timed out"}
	integrationFailure = refusal{"INTEGRATION_FAILURE", http.StatusBadGateway, "Internal server error"}
)

// refuse writes the gateway's own answer: the template's for that type, else for all 4xx or 5xx, else AWS's.
func (g *Gateway) refuse(w http.ResponseWriter, c call, f refusal) {
	r := g.response(f)
	body := r.Template
	if body == "" {
		body = `{"message":$context.error.messageString}`
	}
	body = strings.NewReplacer(
		"$context.error.messageString", strconv.Quote(f.message),
		"$context.error.message", f.message,
		"$context.error.responseType", f.kind,
		"$context.extendedRequestId", c.extendedID,
		"$context.requestId", c.requestID,
		"$context.httpMethod", c.method,
		"$context.stage", g.cfg.System.API.Stage,
		"$context.path", c.path,
	).Replace(body)
	w.Header().Set("Content-Type", "application/json")
	for name, value := range r.Headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.Status)
	w.Write([]byte(body))
}

func (g *Gateway) response(f refusal) template.GatewayResponse {
	responses := g.cfg.System.API.Responses
	r, ok := responses[f.kind]
	if !ok && f.status < 500 {
		r = responses["DEFAULT_4XX"]
	} else if !ok {
		r = responses["DEFAULT_5XX"]
	}
	if r.Status == 0 {
		r.Status = f.status
	}
	return r
}
