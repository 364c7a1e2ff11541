// Package watchfire is for writing Watchfire rules in Go: a struct with settings, declared inputs, and one Evaluate
// over rows.
package watchfire

import "strings"

// Contract is the version of the contract that this package speaks.
const Contract = "watchfire:rule@0.1.0"

// Level is how bad a condition is.
type Level uint8

// The levels, from none to the worst.
const (
	None Level = iota
	Info
	Warning
	Critical
	Emergency
)

// Cause is what likely causes a condition.
type Cause uint8

// The causes.
const (
	Unknown Cause = iota
	Hardware
	Thermal
	Power
	Hang
	Idle
	Supply
	Communication
	Software
	Capacity
	Telemetry
)

// Scope is whose value a column holds, and what a row stands for.
type Scope uint8

// The scopes.
const (
	Host Scope = iota
	GPU
	Device
	Job
	Rank
)

// Aggregate is how the samples of a window become one number; the last two take a share from 0 to 1.
type Aggregate uint8

// The aggregates.
const (
	Newest Aggregate = iota
	Min
	Max
	Mean
	Sum
	Count
	Stddev
	Increase
	Rate
	Slope
	Quantile
	HistogramQuantile
)

// EventStat is what is asked of the events of a window.
type EventStat uint8

// What can be asked.
const (
	EventCount EventStat = iota
	EventAge
	EventLastCode
	EventDistinctJobs
)

// Input is one column: a metric, or events of a kind where Kind is not empty.
type Input struct {
	Metric    string
	Aggregate Aggregate
	Share     float64
	Kind      string
	Codes     []uint32
	Stat      EventStat
	Scope     Scope
	WindowMs  uint64
	Required  bool
}

// Last is the newest value of a metric, required, of the scope that its name tells (gpu_…, host_…).
func Last(metric string) Input {
	return Window(metric, Newest, 0, 0)
}

// Window is an aggregate of a metric over the last seconds; share is for quantiles and 0 otherwise.
func Window(metric string, aggregate Aggregate, share float64, seconds uint64) Input {
	return Input{
		Metric: metric, Aggregate: aggregate, Share: share, Scope: scopeOf(metric), WindowMs: seconds * 1000, Required: true,
	}
}

// Events are those of a kind on a GPU (no codes = all) over the last seconds.
func Events(kind string, codes []uint32, stat EventStat, seconds uint64) Input {
	return Input{Kind: kind, Codes: codes, Stat: stat, Scope: GPU, WindowMs: seconds * 1000, Required: true}
}

// Of is the same input, of another scope.
func (input Input) Of(scope Scope) Input {
	input.Scope = scope
	return input
}

// Optional is the same input, without which a row can still be judged.
func (input Input) Optional() Input {
	input.Required = false
	return input
}

func scopeOf(metric string) Scope {
	switch first, _, _ := strings.Cut(metric, "_"); first {
	case "host":
		return Host
	case "filesystem", "disk", "nic":
		return Device
	case "job":
		return Job
	case "rank":
		return Rank
	}
	return GPU
}

// Shape is what a rule reads, writes and keeps.
type Shape struct {
	Scope   Scope
	Inputs  []Input
	Outputs []string
	// Schema is the JSON Schema of the settings.
	Schema string
	// StateSlots numbers are kept for each row; another StateVersion starts clean.
	StateSlots, StateVersion uint32
	// Labels says that the rows' labels are wanted.
	Labels bool
	// GroupBy is a label; rows with the same value of it form a group.
	GroupBy string
}

// Problem is what is wrong with a setting; Path names the keys.
type Problem struct {
	Path, Message string
}

// Rule is what an author writes. Settings are decoded from JSON into the rule itself: give its fields tags such as
// `json:"limit"`, and leave what is no setting unexported.
type Rule interface {
	// Shape is asked before there are settings, and again with them.
	Shape() Shape
	// Check says what is wrong with the settings.
	Check() []Problem
	// Evaluate judges all rows. An error is told to people; the rule is then tried again later.
	Evaluate(rows *Rows, report *Report) error
}

// Targets is for rules whose shape asks for labels or groups: called when the rows change.
type Targets interface {
	OnTargets(targets []Target) error
}

// Explainer is for rules that give evidence: for a row of the rows last judged; empty for none.
type Explainer interface {
	Explain(rows *Rows, row int) string
}

// Target is one row's labels and group.
type Target struct {
	Labels map[string]string
	Group  uint32
}

type exported struct {
	name, version string
	make          func() Rule
}

var export exported

// Export makes a rule the module's one rule: call it in init. make gives a rule with the settings that hold where none
// are given.
func Export(name, version string, make func() Rule) {
	export = exported{name, version, make}
}
