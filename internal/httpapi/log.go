package httpapi

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"pintu/internal/logline"
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

// cause is an error's text without what must not be logged: tokens, signed URLs, and the value that could
// not be parsed, which strconv quotes.
func cause(err error) string {
	text := err.Error()
	if n, ok := errors.AsType[*strconv.NumError](err); ok {
		text = strings.ReplaceAll(text, n.Error(), n.Func+" [value]: "+n.Err.Error())
	}
	return logline.Scrub(text)
}
