package main

import (
	"testing"

	"__NAME__/watchfire"
)

func raised(t *testing.T, bench *watchfire.Bench, value float64) bool {
	t.Helper()
	report, err := bench.Tick([]float64{value})
	if err != nil {
		t.Fatal(err)
	}
	return len(report.Hits) > 0 && report.Hits[0].Raise == watchfire.Warning
}

func TestHeatIsToldAndHalfTheTimeIsNot(t *testing.T) {
	bench, err := watchfire.NewBench("{}")
	if err != nil {
		t.Fatal(err)
	}
	for tick := range 100 {
		if raised(t, bench, 70+20*float64(tick%2)) {
			t.Fatalf("raised at tick %d", tick)
		}
	}
	told := false
	for range 48 {
		told = told || raised(t, bench, 90)
	}
	if !told {
		t.Fatal("four minutes of heat are not told")
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	for _, settings := range []string{`{"ticks": 0}`, `{"limits": 80}`, `{"limit": "80"}`, `[]`} {
		if _, err := watchfire.NewBench(settings); err == nil {
			t.Errorf("%s is taken", settings)
		}
	}
}
