// Command datasets answers PUT of datasets, the one operation that must check expressions.
package main

import "pintu/internal/app"

func main() { app.Start(app.Datasets) }
