// Command plan takes messages of the plan queue: it plans, stops and finishes imports.
package main

import "pintu/internal/app"

func main() { app.Start(app.Plan) }
