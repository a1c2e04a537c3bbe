package httpapi

import (
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// log writes the one line of a request. It names the route, never the concrete path or query, which may
// hold record keys; and no token, signed URL or value of a row.
func (a *api) log(c *call, out reply, err error, took time.Duration) {
	attrs := []any{
		slog.String("request_id", c.requestID), slog.String("method", c.Method), slog.String("route", c.route),
		slog.Int("status", out.status), slog.Int64("duration_ms", took.Milliseconds()), slog.Int("bytes", len(out.body)),
	}
	for _, a := range []slog.Attr{
		slog.String("tenant", c.caller.Tenant), slog.String("client_id", c.caller.Client), slog.String("token_id", c.caller.TokenID),
		slog.String("job_id", string(out.jobID)), slog.String("code", string(out.code)),
	} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	if out.status < 500 {
		a.Log.Info("request", attrs...)
		return
	}
	a.Log.Error("request", append(attrs, slog.String("cause", cause(err)))...)
}

var secrets = regexp.MustCompile(`pintu_[a-z2-7]+_[a-z2-7]+|https?://\S*[?&]X-Amz-\S+`)

// cause is an error's text without what must not be logged: Go's own errors quote whole signed URLs and
// the values they could not parse.
func cause(err error) string {
	text := err.Error()
	var u *url.Error
	if errors.As(err, &u) {
		text = strings.ReplaceAll(text, u.Error(), u.Op+" [address]: "+u.Err.Error())
	}
	var n *strconv.NumError
	if errors.As(err, &n) {
		text = strings.ReplaceAll(text, n.Error(), n.Func+" [value]: "+n.Err.Error())
	}
	return secrets.ReplaceAllString(text, "[hidden]")
}
