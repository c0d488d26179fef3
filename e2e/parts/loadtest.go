package parts

import (
	"os/exec"
	"testing"
)

// LoadTest runs the load test with those arguments, and returns its output.
func LoadTest(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(program(t, "LOADTEST"), args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("loadtest %v: %v\n%s", args, err, out)
	}
	return string(out)
}
