package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// apiID stands for the generated id of the REST API.
const apiID = "local"

// call is what the gateway adds to a request.
type call struct {
	requestID, extendedID, trace string
	at                           time.Time
	method, path                 string
}

func (g *Gateway) begin(r *http.Request) call {
	var b [32]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	now := g.cfg.Now().UTC()
	return call{
		requestID:  fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16]),
		extendedID: base64.StdEncoding.EncodeToString(b[16:27]),
		trace:      fmt.Sprintf("Root=1-%08x-%s", now.Unix(), hex.EncodeToString(b[20:32])),
		at:         now, method: r.Method, path: r.URL.EscapedPath(),
	}
}

// event is a Lambda proxy event of version 1.0. What is absent is null, not left out.
type event struct {
	Resource          string              `json:"resource"`
	Path              string              `json:"path"`
	Method            string              `json:"httpMethod"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Query             map[string]string   `json:"queryStringParameters"`
	MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters    map[string]string   `json:"pathParameters"`
	StageVariables    map[string]string   `json:"stageVariables"`
	RequestContext    requestContext      `json:"requestContext"`
	Body              *string             `json:"body"`
	Base64            bool                `json:"isBase64Encoded"`
}

type requestContext struct {
	ResourceID        string   `json:"resourceId"`
	ResourcePath      string   `json:"resourcePath"`
	Method            string   `json:"httpMethod"`
	ExtendedRequestID string   `json:"extendedRequestId"`
	RequestTime       string   `json:"requestTime"`
	Path              string   `json:"path"` // with the stage, unlike the event's own
	AccountID         string   `json:"accountId"`
	Protocol          string   `json:"protocol"`
	Stage             string   `json:"stage"`
	DomainPrefix      string   `json:"domainPrefix"`
	RequestTimeEpoch  int64    `json:"requestTimeEpoch"`
	RequestID         string   `json:"requestId"`
	Identity          identity `json:"identity"`
	DomainName        string   `json:"domainName"`
	DeploymentID      string   `json:"deploymentId"`
	APIID             string   `json:"apiId"`
}

// identity holds nulls for everything that only IAM or Cognito authorization knows.
type identity struct {
	CognitoIdentityPoolID         *string `json:"cognitoIdentityPoolId"`
	AccountID                     *string `json:"accountId"`
	CognitoIdentityID             *string `json:"cognitoIdentityId"`
	Caller                        *string `json:"caller"`
	SourceIP                      string  `json:"sourceIp"`
	PrincipalOrgID                *string `json:"principalOrgId"`
	AccessKey                     *string `json:"accessKey"`
	CognitoAuthenticationType     *string `json:"cognitoAuthenticationType"`
	CognitoAuthenticationProvider *string `json:"cognitoAuthenticationProvider"`
	UserArn                       *string `json:"userArn"`
	UserAgent                     *string `json:"userAgent"`
	User                          *string `json:"user"`
}

func (g *Gateway) event(r *http.Request, c call, resource string, parameters map[string]string, body []byte) []byte {
	source := sourceIP(r)
	e := event{Resource: resource, Path: c.path, Method: r.Method, RequestContext: g.context(r, c, resource, source)}
	e.MultiValueHeaders = headers(r, c, source)
	e.Headers = lastOf(e.MultiValueHeaders)
	if query := r.URL.Query(); len(query) > 0 {
		e.MultiValueQuery = query
		e.Query = lastOf(query)
	}
	if len(parameters) > 0 {
		e.PathParameters = parameters
	}
	if len(body) > 0 {
		text := string(body)
		if e.Base64 = g.binary(r.Header.Get("Content-Type")); e.Base64 {
			text = base64.StdEncoding.EncodeToString(body)
		}
		e.Body = &text
	}
	out, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings, maps of strings and numbers
	}
	return out
}

func (g *Gateway) context(r *http.Request, c call, resource, source string) requestContext {
	stage := g.cfg.System.API.Stage
	host, _, _ := strings.Cut(r.Host, ":")
	prefix, _, _ := strings.Cut(host, ".")
	out := requestContext{
		ResourceID: resourceID(resource), ResourcePath: resource, Method: r.Method, ExtendedRequestID: c.extendedID,
		RequestTime: c.at.Format("02/Jan/2006:15:04:05 -0700"), RequestTimeEpoch: c.at.UnixMilli(), Path: "/" + stage + c.path,
		AccountID: g.cfg.Account, Protocol: r.Proto, Stage: stage, DomainPrefix: prefix, DomainName: host, RequestID: c.requestID,
		Identity: identity{SourceIP: source}, DeploymentID: "local", APIID: apiID,
	}
	if agent := r.UserAgent(); agent != "" {
		out.Identity.UserAgent = &agent
	}
	return out
}

// resourceID is any stable short id.
func resourceID(resource string) string {
	return strings.ToLower(hex.EncodeToString([]byte(resource))[:min(6, 2*len(resource))])
}

func sourceIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// dropped are headers that end at the gateway.
var dropped = []string{"Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Expect"}

func headers(r *http.Request, c call, source string) map[string][]string {
	h := r.Header.Clone()
	for _, name := range dropped {
		h.Del(name)
	}
	h.Set("Host", r.Host)
	h.Set("X-Amzn-Trace-Id", c.trace)
	h.Set("X-Forwarded-For", strings.Join(append(slices.Clone(h.Values("X-Forwarded-For")), source), ", "))
	h.Set("X-Forwarded-Proto", "http")
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	h.Set("X-Forwarded-Port", port)
	return h
}

func lastOf(multi map[string][]string) map[string]string {
	out := map[string]string{}
	for name, values := range multi {
		out[name] = values[len(values)-1]
	}
	return out
}

// binary tells whether the API treats a media type as binary.
func (g *Gateway) binary(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return slices.Contains(g.cfg.System.API.BinaryTypes, mediaType) || slices.Contains(g.cfg.System.API.BinaryTypes, "*/*")
}
