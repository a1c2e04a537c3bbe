package logline

import (
	"log/slog"
	"regexp"
)

// What may hide in the text of an error or an address: the signature of a presigned URL is in its query,
// a password before the host, a token anywhere.
var (
	userinfo = regexp.MustCompile(`(?i)(https?://)[^/\s"@]*@`)
	query    = regexp.MustCompile(`(?i)(https?://[^\s"?]*)\?[^\s"]*`)
	token    = regexp.MustCompile(`(pintu_[0-9A-Za-z]+_)[0-9A-Za-z_-]+`)
	bearer   = regexp.MustCompile(`(?i)(bearer\s+)[^\s",]+`)
	secret   = regexp.MustCompile(`(whsec_)[0-9A-Za-z+/=]+`)
)

// Scrub takes queries and passwords out of URLs, and the secret parts out of tokens. It is a net below
// code that must not log them in the first place. An *url.Error prints its whole URL, and every error of
// an HTTP client is one.
func Scrub(s string) string {
	s = userinfo.ReplaceAllString(s, "${1}")
	s = query.ReplaceAllString(s, "${1}?…")
	s = token.ReplaceAllString(s, "${1}…")
	s = bearer.ReplaceAllString(s, "${1}…")
	return secret.ReplaceAllString(s, "${1}…")
}

func scrubAttr(_ []string, a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, Scrub(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.String(a.Key, Scrub(err.Error()))
		}
	}
	return a
}
