package compute

import "pintu/internal/dataset"

// Evaluator is Compile for those who know only the interface.
func Evaluator(def *dataset.Definition) (dataset.Evaluator, error) { return Compile(def) }
