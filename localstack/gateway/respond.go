package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// answer is what a function returns. API Gateway takes no other fields.
type answer struct {
	StatusCode        json.RawMessage            `json:"statusCode"` // a number, or a string of one
	Headers           map[string]json.RawMessage `json:"headers"`    // strings, numbers or booleans
	MultiValueHeaders map[string][]string        `json:"multiValueHeaders"`
	Body              *string                    `json:"body"`
	Base64            bool                       `json:"isBase64Encoded"`
	Cookies           json.RawMessage            `json:"cookies"` // of version 2.0; ignored here
}

// respond writes a function's answer to the client.
func (g *Gateway) respond(w http.ResponseWriter, r *http.Request, c call, function string, payload []byte) {
	a, status, err := parseAnswer(payload)
	if err != nil {
		g.fail(w, c, function, fmt.Sprintf("malformed Lambda proxy response: %v: %.200s", err, payload))
		return
	}
	body, err := g.body(r, a)
	if err != nil {
		g.fail(w, c, function, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Trace-Id", c.trace)
	for name, values := range a.headers() {
		name = remapped(name)
		w.Header().Del(name)
		for _, v := range values {
			w.Header().Add(name, v)
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if status == http.StatusNoContent || status == http.StatusNotModified {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(status)
	w.Write(body)
}

func parseAnswer(payload []byte) (a answer, status int, err error) {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, 0, err
	}
	status = http.StatusOK
	if len(a.StatusCode) > 0 && string(a.StatusCode) != "null" {
		status, err = strconv.Atoi(strings.Trim(string(a.StatusCode), `"`))
	}
	if err == nil && (status < 100 || status > 599) {
		err = fmt.Errorf("status %d", status)
	}
	return a, status, err
}

// headers merges both kinds of headers; a name in both keeps the values of both, each once.
func (a answer) headers() map[string][]string {
	out := map[string][]string{}
	for name, values := range a.MultiValueHeaders {
		name = http.CanonicalHeaderKey(name)
		out[name] = append(out[name], values...)
	}
	for name, raw := range a.Headers {
		name = http.CanonicalHeaderKey(name)
		value := string(raw)
		if strings.HasPrefix(value, `"`) {
			json.Unmarshal(raw, &value) // it is valid JSON: it has been decoded before
		}
		if !slices.Contains(out[name], value) {
			out[name] = append(out[name], value)
		}
	}
	return out
}

// body decodes a binary answer. As on AWS that happens only when the API has binary types and the first media type of
// Accept is one of them; else the client gets the base64 text.
func (g *Gateway) body(r *http.Request, a answer) ([]byte, error) {
	if a.Body == nil {
		return nil, nil
	}
	accepted, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	if !a.Base64 || !g.binary(accepted) {
		return []byte(*a.Body), nil
	}
	out, err := base64.StdEncoding.DecodeString(*a.Body)
	if err != nil {
		return nil, fmt.Errorf("decode the body: %w", err)
	}
	return out, nil
}

// ours are response headers that API Gateway keeps for itself. A function's own come out under another name:
// WWW-Authenticate too, so no client of a REST API ever sees it.
var ours = []string{"Authorization", "Connection", "Content-Length", "Content-Md5", "Date", "Expect", "Host", "Max-Forwards",
	"Proxy-Authenticate", "Server", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Via", "Www-Authenticate",
	"X-Amzn-Requestid", "X-Amzn-Trace-Id", "X-Amz-Apigw-Id", "X-Forwarded-For"}

func remapped(name string) string {
	if slices.Contains(ours, name) {
		return "X-Amzn-Remapped-" + name
	}
	return name
}
