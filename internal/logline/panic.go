package logline

import (
	"fmt"
	"runtime"
)

// Panic says what a recovered panic was about. Its value may be a row or a token, so only errors of the Go
// runtime are quoted; of anything else the type is named.
func Panic(v any) string {
	if e, ok := v.(runtime.Error); ok {
		return "panic: " + e.Error()
	}
	return fmt.Sprintf("panic: %T", v)
}
