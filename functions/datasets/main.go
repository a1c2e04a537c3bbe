// Command datasets answers PUT of datasets, the one operation that must check expressions.
package main

import (
	"pintu/internal/app"
	"pintu/internal/compute"
)

func main() { app.Start(app.Datasets(compute.Evaluator)) }
