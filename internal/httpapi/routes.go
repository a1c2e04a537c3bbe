// Package httpapi is the HTTP API: one http.Handler, the same in Lambda, on one machine and in tests. It
// reads requests strictly, checks them in the order the contract gives, asks the domain, and writes
// answers; it is the only place that picks HTTP status codes. It refuses to decide anything about jobs,
// rows or limits itself, and to remember anything between two requests.
package httpapi

import (
	"net/http"

	"pintu/internal/access"
	"pintu/internal/dataset"
)

// routes is the whole API, in the order of infra/openapi.yaml.
func (a *api) routes() []route {
	return []route{
		// method, path, who may, Idempotency-Key, body (bytes at most), query parameters, what serves it
		a.putDatasetRoute(),
		{"GET", "/v1/datasets/{name}", needs(access.DatasetsRead), keyIgnored, noBody, nil, a.getDataset},
		{"GET", "/v1/datasets/{name}/versions/{n}", needs(access.DatasetsRead), keyIgnored, noBody, nil, a.getDatasetVersion},
		{"GET", "/v1/datasets/{name}/records", needs(access.RecordsRead), keyIgnored, noBody, []string{"key", "cursor", "limit"}, a.listRecords},
		{"GET", "/v1/datasets/{name}/records/{key}", needs(access.RecordsRead), keyIgnored, noBody, nil, a.getRecord},

		{"POST", "/v1/import-jobs", needs(access.JobsSubmit), keyRequired, jsonBody, nil, a.submitImport},
		{"GET", "/v1/import-jobs/{id}", needs(access.JobsRead), keyIgnored, noBody, []string{"wait"}, a.getImportJob},
		{"POST", "/v1/import-jobs/{id}/complete", needs(access.JobsSubmit), keyAccepted, jsonBody, nil, a.completeUpload},
		{"POST", "/v1/import-jobs/{id}/upload-url", needs(access.JobsSubmit), keyAccepted, jsonBody, nil, a.renewUpload},

		{"GET", "/v1/jobs", needs(access.JobsRead), keyIgnored, noBody, []string{"kind", "status", "created_after", "cursor", "limit"}, a.listJobs},
		{"GET", "/v1/jobs/{id}", needs(access.JobsRead), keyIgnored, noBody, []string{"wait"}, a.getJob},
		{"POST", "/v1/jobs/{id}/cancel", needs(access.JobsSubmit), keyAccepted, jsonBody, nil, a.cancelJob},
		{"POST", "/v1/jobs/{id}/retry", needs(access.JobsSubmit), keyRequired, jsonBody, nil, a.retryJob},
		{"POST", "/v1/jobs/{id}/reprocess", needs(access.JobsSubmit), keyRequired, jsonBody, nil, a.reprocessJob},
		{"GET", "/v1/jobs/{id}/rows", needs(access.RowsRead), keyIgnored, noBody, []string{"row_number", "state", "code", "class", "cursor", "limit"}, a.listRows},
		{"PATCH", "/v1/jobs/{id}/rows/{row_number}", needs(access.RowsWrite), keyIgnored, rowBody, nil, a.patchRow},
		{"POST", "/v1/jobs/{id}/rows/retry", needs(access.RowsWrite), keyRequired, jsonBody, nil, a.retryRows},
		{"POST", "/v1/jobs/{id}/rows/discard", needs(access.RowsWrite), keyAccepted, jsonBody, nil, a.discardRows},
		{"GET", "/v1/jobs/{id}/artifacts/{name}", artifactScope, keyIgnored, noBody, nil, a.getArtifact},

		{"GET", "/v1/limits", anyClient, keyIgnored, noBody, nil, a.getLimits},
		{"GET", "/v1/health", anyone, keyIgnored, noBody, nil, a.getHealth},
		{"GET", "/v1/openapi.json", anyone, keyIgnored, noBody, nil, a.getOpenAPI},
	}
}

// putDatasetRoute stands alone because it has a function of its own (see NewDatasets).
func (a *api) putDatasetRoute() route {
	return route{"PUT", "/v1/datasets/{name}", needs(access.DatasetsWrite), keyAccepted, dataset.MaxBytes, nil, a.putDataset}
}

// route is one operation.
type route struct {
	method, path string
	permission   permission
	key          keyRule
	maxBody      int64
	query        []string // every parameter it knows; another one is refused
	serve        func(*call) (reply, error)
}

// permission gives the scope that a request needs, "" when any token will do.
type permission func(*http.Request) access.Scope

// anyone needs no token at all.
var anyone permission

func anyClient(*http.Request) access.Scope { return "" }

func needs(s access.Scope) permission {
	return func(*http.Request) access.Scope { return s }
}

// keyRule says what an operation does with Idempotency-Key.
type keyRule int

const (
	keyIgnored keyRule = iota
	keyAccepted
	keyRequired
)

const (
	noBody   = 0
	jsonBody = 64 << 10 // a submit is at most 4 KB of metadata and some names
	rowBody  = 2 << 20  // a payload of maxRaw whose every byte is written as \u00xx
)
