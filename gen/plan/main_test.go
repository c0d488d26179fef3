package plan

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets four times as much garbage lie as is usual: thousands of planners are made that each live for one
// comparison, and with little that lives the collector would take a third of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
