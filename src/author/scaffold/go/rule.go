// A GPU that was over its limit most of the time. `go test` tests it as it is; `watchfire test` builds it to
// WebAssembly and runs scenarios/.
package main

import "__NAME__/watchfire"

func main() {}

func init() {
	watchfire.Export("__NAME__", "0.1.0", newRule)
}

// Mostly is the rule, with what a template writes under `with:`.
type Mostly struct {
	// A GPU above this is too hot.
	Limit float64 `json:"limit"`
	// The number of ticks that are looked back on, fading.
	Ticks float64 `json:"ticks"`
	// The share of time that is too much.
	Share float64 `json:"share"`
}

func newRule() watchfire.Rule {
	return &Mostly{Limit: 85, Ticks: 24, Share: 0.8}
}

func (*Mostly) Shape() watchfire.Shape {
	return watchfire.Shape{
		Scope:        watchfire.GPU,
		Inputs:       []watchfire.Input{watchfire.Last("gpu_temperature_celsius")},
		StateSlots:   1,
		StateVersion: 1,
	}
}

func (rule *Mostly) Check() (problems []watchfire.Problem) {
	if !(rule.Ticks >= 1) {
		problems = append(problems, watchfire.Problem{Path: "ticks", Message: "must be at least 1"})
	}
	if !(rule.Share > 0 && rule.Share <= 1) {
		problems = append(problems, watchfire.Problem{Path: "share", Message: "must be above 0 and at most 1"})
	}
	return problems
}

func (rule *Mostly) Evaluate(rows *watchfire.Rows, report *watchfire.Report) error {
	note := watchfire.NoNote
	// A row without a value keeps its state, and nothing is said of it.
	for row, value := range rows.Values(0) {
		before := rows.State(0, row)
		over := 0.0
		if value > rule.Limit {
			over = 1
		}
		share := before + (over-before)/rule.Ticks
		report.SetState(0, row, share)
		if !(share > rule.Share*0.5) {
			continue
		}
		if note == watchfire.NoNote {
			note = report.Note("over the limit most of the time")
		}
		hit := watchfire.Hit{Row: row, Hold: watchfire.Warning, Value: share, Cause: watchfire.Thermal, Note: note}
		// Between the two limits it is not bad enough to begin an alert, but bad enough to keep one.
		if share > rule.Share {
			hit.Raise = watchfire.Warning
		}
		report.Hit(hit)
	}
	return nil
}
