//go:build !wasm

package watchfire

import "log"

// Log is a line for the host's log.
func Log(line string) {
	log.Print(line)
}
