// Command process takes messages of the process queue: it validates and applies one chunk of an import each.
package main

import (
	"pintu/internal/app"
	"pintu/internal/compute"
)

func main() { app.Start(app.Process(compute.Evaluator)) }
