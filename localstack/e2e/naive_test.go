package e2e

import (
	"strconv"
	"strings"

	"pintu/internal/access"
)

var allScopes = access.Scopes

// naive imports a file of lines "k,v" into an empty dataset, one row after the other, in memory.
func naive(content []byte) outcome {
	o := outcome{Records: map[string]string{}, Rejected: map[int64]string{}}
	byCode := map[string]any{}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")[1:]
	for i, line := range lines {
		k, v, _ := strings.Cut(line, ",")
		n, err := strconv.Atoi(v)
		code := ""
		switch _, taken := o.Records[k]; {
		case err != nil:
			code = "TYPE_MISMATCH"
		case n < 0:
			code = "CONSTRAINT_VIOLATED"
		case taken:
			code = "DUPLICATE_KEY_IN_FILE"
		default:
			o.Records[k] = v
			continue
		}
		o.Rejected[int64(i+1)] = code
		before, _ := byCode[code].(float64)
		byCode[code] = before + 1
	}
	accepted, rejected := float64(len(o.Records)), float64(len(o.Rejected))
	o.Counters = map[string]any{"rows_total": float64(len(lines)), "rows_accepted": accepted, "rows_created": accepted, "rows_updated": 0.0, "rows_unchanged": 0.0,
		"rows_skipped": 0.0, "rows_rejected": rejected, "rows_unprocessed": 0.0, "rows_planned": nil, "rejected_by_code": byCode}
	o.Status = "partial"
	if rejected == 0 {
		o.Status = "succeeded"
	}
	return o
}
