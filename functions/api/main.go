// Command api answers every operation of the HTTP API but PUT of datasets.
package main

import "pintu/internal/app"

func main() { app.Start(app.API) }
