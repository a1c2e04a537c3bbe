package httpapi

import (
	"net/http"
	"time"

	"pintu/infra"
	"pintu/internal/dataset"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

type limitView struct {
	Limit int64  `json:"limit"`
	Used  *int64 `json:"used"` // null: bounds each request, nothing is used up
}

// getLimits shows every published limit with the caller's present use.
func (a *api) getLimits(c *call) (reply, error) {
	use, err := a.Access.Use(c.ctx(), c.caller)
	if err != nil {
		return reply{}, err
	}
	used := func(limit, n int) limitView {
		n64 := int64(n)
		return limitView{int64(limit), &n64}
	}
	bound := func(limit int64) limitView { return limitView{Limit: limit} }
	whole := func(d time.Duration) limitView { return bound(int64(d / time.Second)) }
	l := c.caller.Limits
	return answer(http.StatusOK, map[string]any{"client_id": c.caller.Client, "limits": map[string]limitView{
		"submits_per_minute":          used(l.SubmitsPerMinute, use.SubmitsThisMinute),
		"active_jobs":                 used(l.ActiveJobs, use.ActiveJobs),
		"uploading_jobs":              used(l.UploadingJobs, use.UploadingJobs),
		"wait_seconds_per_minute":     used(l.WaitSecondsPerMinute, use.WaitSecondsThisMinute),
		"wait_seconds":                bound(maxWaitSeconds),
		"file_bytes":                  bound(l.MaxFileBytes),
		"job_seconds":                 whole(l.JobTime),
		"page_size":                   bound(int64(pageLimit(c.caller))),
		"page_bytes":                  bound(maxPageBytes),
		"request_bytes":               bound(jsonBody),
		"dataset_bytes":               bound(dataset.MaxBytes),
		"metadata_bytes":              bound(maxMetadata),
		"row_bytes":                   bound(maxRaw),
		"rows_per_request":            bound(maxRowsNamed),
		"rows_per_retry":              bound(quarantine.MaxRetryRows),
		"upload_url_seconds":          whole(job.DefaultURLLife),
		"upload_window_seconds":       whole(job.UploadWindow),
		"upload_window_total_seconds": whole(job.MaxUploadWindow),
		"idempotency_key_seconds":     whole(idempotency.Window),
	}})
}

// getHealth answers whenever the handler runs; it asks no other service, so that a slow store does not make
// a sound function look dead.
func (a *api) getHealth(*call) (reply, error) {
	return answer(http.StatusOK, map[string]string{"status": "ok"})
}

func (a *api) getOpenAPI(*call) (reply, error) {
	return reply{status: http.StatusOK, body: infra.OpenAPI}, nil
}
