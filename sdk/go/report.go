package watchfire

import "math"

// NoNote is for hits without a note.
const NoNote = -1

// Hit is what is said of one row.
type Hit struct {
	Row         int
	Raise, Hold Level
	Value       float64
	Cause       Cause
	// Note is a number that Report.Note gave, or NoNote.
	Note int
}

// Report is what a rule answers at one tick.
type Report struct {
	Hits    []Hit
	Notes   []string
	State   []float64
	Derived []float64

	rows    *Rows
	outputs int
}

// Hit says of a row that Raise is met now and that Hold keeps an alert alive (lifted to Raise where it is below).
func (report *Report) Hit(hit Hit) {
	hit.Hold = max(hit.Raise, hit.Hold)
	report.Hits = append(report.Hits, hit)
}

// Note adds a text that hits can point to; its number.
func (report *Report) Note(text string) int {
	report.Notes = append(report.Notes, text)
	return len(report.Notes) - 1
}

// SetState keeps a number for a row until the next tick. What is not set stays as it was.
func (report *Report) SetState(slot, row int, value float64) {
	if report.State == nil {
		report.State = append(make([]float64, 0, len(report.rows.state)), report.rows.state...)
	}
	if at, known := report.rows.cell(slot, row, len(report.State)); known {
		report.State[at] = value
	}
}

// Derive gives a derived metric its value for a row.
func (report *Report) Derive(output, row int, value float64) {
	cells := report.outputs * report.rows.len
	at, known := report.rows.cell(output, row, cells)
	if !known {
		return
	}
	if report.Derived == nil {
		report.Derived = make([]float64, cells)
		for cell := range report.Derived {
			report.Derived[cell] = math.NaN()
		}
	}
	report.Derived[at] = value
}
