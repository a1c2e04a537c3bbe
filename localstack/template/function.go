package template

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// functionAWSOnly are properties that change nothing for a process on one machine.
var functionAWSOnly = []string{"Description", "Policies", "Role", "Architectures", "LoggingConfig", "Tracing", "Tags",
	"ReservedConcurrentExecutions", "CodeUri", "EphemeralStorage", "RecursiveLoop", "FunctionName", "Events"}

func (b *builder) function(r *resource) error {
	err := pairs(b.globals, func(key, _ *yaml.Node) error {
		if key.Value != "Function" && key.Value != "Api" {
			return at(key, "Globals.%s is not supported by the embedded stack", key.Value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.properties = merged(lookup(b.globals, "Function"), r.properties)
	var p struct {
		Runtime     string `yaml:"Runtime"`
		Handler     string `yaml:"Handler"`
		Timeout     int    `yaml:"Timeout"`
		MemorySize  int    `yaml:"MemorySize"`
		Environment struct {
			Variables map[string]string `yaml:"Variables"`
		} `yaml:"Environment"`
	}
	p.Timeout, p.MemorySize = 3, 128 // Lambda's defaults
	if err := b.properties(r, &p, functionAWSOnly...); err != nil {
		return err
	}
	if p.Runtime != "provided.al2023" || p.Handler != "bootstrap" {
		return at(r.node, "%s: runtime %q with handler %q is not supported by the embedded stack (provided.al2023, bootstrap)", r.logicalID, p.Runtime, p.Handler)
	}
	name, err := b.name(r)
	if err != nil {
		return err
	}
	format, err := b.logFormat(r)
	if err != nil {
		return err
	}
	f := Function{LogicalID: r.logicalID, Name: name, ARN: b.arn("lambda", "function:"+name),
		Timeout: time.Duration(p.Timeout) * time.Second, MemoryMB: p.MemorySize, LogFormat: format, Env: p.Environment.Variables}
	err = pairs(lookup(r.properties, "Events"), func(key, n *yaml.Node) error { return b.event(&f, key.Value, n) })
	b.system.Functions = append(b.system.Functions, f)
	return err
}

// logFormat is the one part of LoggingConfig that a function can see.
func (b *builder) logFormat(r *resource) (string, error) {
	n := lookup(lookup(r.properties, "LoggingConfig"), "LogFormat")
	if n == nil {
		return "Text", nil
	}
	return b.str(n)
}

// event adds one trigger to a function.
func (b *builder) event(f *Function, name string, n *yaml.Node) error {
	kind := lookup(n, "Type")
	if kind == nil {
		return at(n, "event %s of %s has no Type", name, f.LogicalID)
	}
	given := lookup(n, "Properties")
	if given == nil {
		return at(n, "event %s of %s has no Properties", name, f.LogicalID)
	}
	properties, err := b.resolve(without(given, "RestApiId", "Description", "Name"))
	if err != nil {
		return err
	}
	switch kind.Value {
	case "Api":
		return addRoute(f, properties)
	case "SQS":
		return b.addSource(f, name, properties)
	case "Schedule":
		return addSchedule(f, name, properties)
	}
	return at(kind, "event type %s is not supported by the embedded stack", kind.Value)
}

func addRoute(f *Function, n *yaml.Node) error {
	var p struct {
		Path   string `yaml:"Path"`
		Method string `yaml:"Method"`
	}
	if err := decode(n, f.LogicalID, &p); err != nil {
		return err
	}
	if !strings.HasPrefix(p.Path, "/") || p.Method == "" {
		return at(n, "an Api event of %s needs a Path and a Method", f.LogicalID)
	}
	f.Routes = append(f.Routes, Route{Method: strings.ToUpper(p.Method), Path: p.Path})
	return nil
}

func (b *builder) addSource(f *Function, name string, n *yaml.Node) error {
	var p struct {
		Queue                          string   `yaml:"Queue"`
		BatchSize                      int      `yaml:"BatchSize"`
		MaximumBatchingWindowInSeconds int      `yaml:"MaximumBatchingWindowInSeconds"`
		FunctionResponseTypes          []string `yaml:"FunctionResponseTypes"`
		Enabled                        *bool    `yaml:"Enabled"`
		ScalingConfig                  struct {
			MaximumConcurrency int `yaml:"MaximumConcurrency"`
		} `yaml:"ScalingConfig"`
	}
	p.BatchSize = 10
	if err := decode(n, f.LogicalID, &p); err != nil {
		return err
	}
	if p.BatchSize < 1 || p.BatchSize > 10 {
		return at(n, "event %s of %s: a BatchSize of %d is not supported by the embedded stack (1 to 10)", name, f.LogicalID, p.BatchSize)
	}
	if p.Enabled != nil && !*p.Enabled {
		return nil
	}
	s := Source{Name: name, QueueARN: p.Queue, Queue: p.Queue[strings.LastIndex(p.Queue, ":")+1:], BatchSize: p.BatchSize,
		Window: time.Duration(p.MaximumBatchingWindowInSeconds) * time.Second, MaxConcurrency: p.ScalingConfig.MaximumConcurrency}
	for _, t := range p.FunctionResponseTypes {
		if t != "ReportBatchItemFailures" {
			return at(n, "event %s of %s: unknown response type %q", name, f.LogicalID, t)
		}
		s.ReportFailures = true
	}
	f.Sources = append(f.Sources, s)
	return nil
}

func addSchedule(f *Function, name string, n *yaml.Node) error {
	var p struct {
		Schedule string `yaml:"Schedule"`
		Input    string `yaml:"Input"`
		Enabled  *bool  `yaml:"Enabled"`
	}
	if err := decode(n, f.LogicalID, &p); err != nil {
		return err
	}
	every, err := parseRate(p.Schedule)
	if err != nil {
		return at(n, "event %s of %s: %v", name, f.LogicalID, err)
	}
	if p.Enabled == nil || *p.Enabled {
		f.Schedules = append(f.Schedules, Schedule{Name: name, Every: every, Input: p.Input})
	}
	return nil
}

// parseRate reads rate(N minutes|hours|days); EventBridge wants the singular for 1.
func parseRate(s string) (time.Duration, error) {
	inner, ok := strings.CutPrefix(s, "rate(")
	inner, closed := strings.CutSuffix(inner, ")")
	number, unit, spaced := strings.Cut(inner, " ")
	n, err := strconv.Atoi(number)
	if !ok || !closed || !spaced || err != nil || n < 1 {
		return 0, fmt.Errorf("schedule %q is not supported by the embedded stack (only rate expressions)", s)
	}
	if (n == 1) == strings.HasSuffix(unit, "s") {
		return 0, fmt.Errorf("schedule %q: EventBridge wants the singular for 1 and the plural for more", s)
	}
	switch strings.TrimSuffix(unit, "s") {
	case "minute":
		return time.Duration(n) * time.Minute, nil
	case "hour":
		return time.Duration(n) * time.Hour, nil
	case "day":
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return 0, fmt.Errorf("schedule %q: unknown unit %q", s, unit)
}
