package watchfire

import "errors"

// Bench runs a rule as it is, without building it: for `go test`.
type Bench struct {
	rule  Rule
	shape Shape
	state []float64
	ticks int64
}

// NewBench configures the exported rule with settings as JSON.
func NewBench(settings string) (*Bench, error) {
	rule, problems := configured(settings)
	if len(problems) > 0 {
		return nil, errors.New(joined(problems))
	}
	return &Bench{rule: rule, shape: rule.Shape()}, nil
}

// Tick judges columns: for each input a value for each row, all of them good.
func (bench *Bench) Tick(columns ...[]float64) (*Report, error) {
	rows := &Rows{NowMs: bench.ticks * 5000, IntervalMs: 5000}
	for _, column := range columns {
		rows.len = len(column)
		rows.values = append(rows.values, column...)
	}
	rows.quality = make([]uint8, len(rows.values))
	if cells := int(bench.shape.StateSlots) * rows.len; len(bench.state) != cells {
		bench.state = make([]float64, cells)
	}
	rows.state = bench.state
	bench.ticks++
	report := &Report{rows: rows, outputs: len(bench.shape.Outputs)}
	err := bench.rule.Evaluate(rows, report)
	if err == nil && report.State != nil {
		bench.state = report.State
	}
	return report, err
}
