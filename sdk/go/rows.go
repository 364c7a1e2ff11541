package watchfire

import "iter"

// Rows are all rows of a rule at one tick.
type Rows struct {
	// NowMs is in milliseconds since the Unix epoch, IntervalMs between ticks.
	NowMs      int64
	IntervalMs uint64

	len     int
	values  []float64
	quality []uint8
	groups  []uint32
	state   []float64
}

// Len is how many rows there are.
func (rows *Rows) Len() int {
	return rows.len
}

func (rows *Rows) cell(column, row, cells int) (int, bool) {
	at := column*rows.len + row
	return at, column >= 0 && row >= 0 && row < rows.len && at < cells
}

// Get is the value of an input, and whether it is there and can be trusted.
func (rows *Rows) Get(input, row int) (float64, bool) {
	at, known := rows.cell(input, row, len(rows.values))
	if !known || rows.quality[at] != 0 {
		return 0, false
	}
	return rows.values[at], true
}

// Quality is 0 ok, 1 missing, 2 stale, 3 invalid.
func (rows *Rows) Quality(input, row int) uint8 {
	if at, known := rows.cell(input, row, len(rows.quality)); known {
		return rows.quality[at]
	}
	return 1
}

// Values are the rows whose value of an input is there, with the value.
func (rows *Rows) Values(input int) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		for row := range rows.len {
			if value, known := rows.Get(input, row); known && !yield(row, value) {
				return
			}
		}
	}
}

// State is what the last good tick left in a slot; 0 at first.
func (rows *Rows) State(slot, row int) float64 {
	if at, known := rows.cell(slot, row, len(rows.state)); known {
		return rows.state[at]
	}
	return 0
}

// Group is the number of the row's group; 0 where the rule asked for none.
func (rows *Rows) Group(row int) uint32 {
	if row >= 0 && row < len(rows.groups) {
		return rows.groups[row]
	}
	return 0
}
