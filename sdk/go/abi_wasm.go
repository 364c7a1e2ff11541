package watchfire

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// What the host asked memory for, until the call that it is for takes it over.
var given [][]uint64

// What the last answer points to, until the next call.
var kept []any

// Addresses of the host are 32 bits wide, those of Go 64.
type text struct{ at, len uint32 }

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(uintptr(align))
	}
	block := make([]uint64, (size+7)/8)
	given = append(given, block)
	at := unsafe.Pointer(unsafe.SliceData(block))
	if oldSize > 0 {
		copy(unsafe.Slice((*byte)(at), size), unsafe.Slice((*byte)(old), min(oldSize, size)))
	}
	return at
}

// What the host gave is the caller's from here on, and the last answer has been read.
func begin() {
	given, kept = nil, nil
}

func list[T any](at unsafe.Pointer, n uint32) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(at), n)
}

func word(at unsafe.Pointer, n uint32) string {
	return string(list[byte](at, n))
}

func (from text) word() string {
	return word(unsafe.Pointer(uintptr(from.at)), from.len)
}

// The address of something that stays until the next call.
func address[T any](thing *T) uint32 {
	kept = append(kept, thing)
	return uint32(uintptr(unsafe.Pointer(thing)))
}

func keepList[T any](items []T) text {
	if len(items) == 0 {
		return text{at: 8}
	}
	return text{address(unsafe.SliceData(items)), uint32(len(items))}
}

func keepText(words string) text {
	return keepList([]byte(words))
}

func keepTexts(all []string) text {
	texts := make([]text, len(all))
	for at, one := range all {
		texts[at] = keepText(one)
	}
	return keepList(texts)
}

type cInput struct {
	kind     uint8
	_        [7]uint8
	name     text
	first    uint32 // the aggregate, or where the codes are
	second   uint32 // how many codes
	third    uint64 // the share, or the stat
	scope    uint8
	_        [7]uint8
	windowMs uint64
	required bool
	_        [7]uint8
}

type cDescriptor struct {
	contract, name, version  text
	scope                    uint8
	_                        [3]uint8
	inputs, outputs, schema  text
	stateSlots, stateVersion uint32
	labels                   bool
	_                        [3]uint8
	grouped                  bool
	_                        [3]uint8
	groupBy                  text
}

func lowerInput(input Input) cInput {
	low := cInput{scope: uint8(input.Scope), windowMs: input.WindowMs, required: input.Required}
	if input.Kind == "" {
		low.name, low.first, low.third = keepText(input.Metric), uint32(input.Aggregate), math.Float64bits(input.Share)
		return low
	}
	codes := keepList(input.Codes)
	low.kind, low.name, low.first, low.second = 1, keepText(input.Kind), codes.at, codes.len
	low.third = uint64(input.Stat)
	return low
}

var running Rule
var shape Shape

//go:wasmexport watchfire:rule/rule@0.1.0#describe
func describe() uint32 {
	begin()
	rule := running
	if rule == nil {
		rule = export.make()
	}
	said := rule.Shape()
	inputs := make([]cInput, len(said.Inputs))
	for at, input := range said.Inputs {
		inputs[at] = lowerInput(input)
	}
	return address(&cDescriptor{
		contract: keepText(Contract), name: keepText(export.name), version: keepText(export.version),
		scope: uint8(said.Scope), inputs: keepList(inputs), outputs: keepTexts(said.Outputs),
		schema: keepText(said.Schema), stateSlots: said.StateSlots, stateVersion: said.StateVersion,
		labels: said.Labels, grouped: said.GroupBy != "", groupBy: keepText(said.GroupBy),
	})
}

// A result whose good side holds nothing.
type cResult struct {
	failed bool
	_      [3]uint8
	why    text
	_      [7]uint32 // as wide as the widest answer
}

func answer(failed bool, why text) uint32 {
	return address(&cResult{failed: failed, why: why})
}

//go:wasmexport watchfire:rule/rule@0.1.0#validate-settings
func validateSettings(at unsafe.Pointer, n uint32) uint32 {
	json := word(at, n)
	begin()
	_, problems := configured(json)
	lines := []text{}
	for _, problem := range problems {
		lines = append(lines, keepText(problem.Path), keepText(problem.Message))
	}
	low := keepList(lines)
	low.len /= 2
	return answer(low.len > 0, low)
}

//go:wasmexport watchfire:rule/rule@0.1.0#configure
func configure(at unsafe.Pointer, n uint32) uint32 {
	json := word(at, n)
	begin()
	rule, problems := configured(json)
	if len(problems) > 0 {
		return answer(true, keepText(joined(problems)))
	}
	running, shape = rule, rule.Shape()
	return answer(false, text{})
}

type cTarget struct {
	labels text
	group  uint32
}

//go:wasmexport watchfire:rule/rule@0.1.0#on-targets
func onTargets(at unsafe.Pointer, n uint32) uint32 {
	targets := make([]Target, 0, n)
	for _, low := range list[cTarget](at, n) {
		target := Target{Labels: make(map[string]string, low.labels.len), Group: low.group}
		for _, pair := range list[[2]text](unsafe.Pointer(uintptr(low.labels.at)), low.labels.len) {
			target.Labels[pair[0].word()] = pair[1].word()
		}
		targets = append(targets, target)
	}
	begin()
	wants, is := running.(Targets)
	if !is {
		return answer(false, text{})
	}
	if err := guarded(func() error { return wants.OnTargets(targets) }); err != nil {
		return answer(true, keepText(err.Error()))
	}
	return answer(false, text{})
}

type cHit struct {
	row         uint32
	raise, hold uint8
	value       float64
	cause       uint8
	_           [3]uint8
	noted       bool
	_           [3]uint8
	note        uint32
	_           uint32
}

type cOutcome struct {
	failed      bool
	_           [3]uint8
	hits, notes text
	stateSet    bool
	_           [3]uint8
	state       text
	derived     text
}

var last Rows

//go:wasmexport watchfire:rule/rule@0.1.0#evaluate
func evaluate(
	_ uint64, nowMs int64, intervalMs uint64, rows uint32, columns unsafe.Pointer, nColumns uint32,
	quality unsafe.Pointer, nQuality uint32, groups unsafe.Pointer, nGroups uint32, state unsafe.Pointer, nState uint32,
) uint32 {
	last = Rows{
		NowMs: nowMs, IntervalMs: intervalMs, len: int(rows), values: list[float64](columns, nColumns),
		quality: list[uint8](quality, nQuality), groups: list[uint32](groups, nGroups), state: list[float64](state, nState),
	}
	begin()
	if running == nil {
		return answer(true, keepText("the rule is not configured"))
	}
	report := &Report{rows: &last, outputs: len(shape.Outputs)}
	if err := guarded(func() error { return running.Evaluate(&last, report) }); err != nil {
		return answer(true, keepText(err.Error()))
	}
	hits := make([]cHit, len(report.Hits))
	for at, hit := range report.Hits {
		hits[at] = cHit{
			row: uint32(hit.Row), raise: uint8(hit.Raise), hold: uint8(hit.Hold), value: hit.Value,
			cause: uint8(hit.Cause), noted: hit.Note >= 0, note: uint32(max(hit.Note, 0)),
		}
	}
	return address(&cOutcome{
		hits: keepList(hits), notes: keepTexts(report.Notes), stateSet: report.State != nil,
		state: keepList(report.State), derived: keepList(report.Derived),
	})
}

type cExplained struct {
	failed bool
	_      [3]uint8
	there  bool
	_      [3]uint8
	words  text
}

//go:wasmexport watchfire:rule/rule@0.1.0#explain
func explain(row uint32) uint32 {
	begin()
	words := ""
	explainer, is := running.(Explainer)
	if is && int(row) < last.len {
		if err := guarded(func() error { words = explainer.Explain(&last, int(row)); return nil }); err != nil {
			return answer(true, keepText(err.Error()))
		}
	}
	return address(&cExplained{there: words != "", words: keepText(words)})
}

// A panic is an error like another: its words reach people.
func guarded(call func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return call()
}

//go:wasmimport watchfire:rule/host@0.1.0 log
func hostLog(at unsafe.Pointer, n uint32)

// Log is a line for the host's log.
func Log(line string) {
	hostLog(unsafe.Pointer(unsafe.StringData(line)), uint32(len(line)))
	runtime.KeepAlive(line)
}
