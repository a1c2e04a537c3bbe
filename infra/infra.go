// Package infra carries the OpenAPI document into the program. People edit openapi.yaml; openapi.json is
// the same document as it is served, and `go test ./infra -update` writes it. It refuses to hold anything
// else that runs: alarms, dashboards and parameters beside it are for the deployment alone.
package infra

import _ "embed"

// OpenAPI is the OpenAPI 3.1 document of the HTTP API, as JSON.
//
//go:embed openapi.json
var OpenAPI []byte
