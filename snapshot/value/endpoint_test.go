package value

import (
	"strings"
	"testing"
)

// Every state of health has a name of its own, and a value that is none does not panic: pages show whatever a View
// holds.
func TestEveryHealthHasAName(t *testing.T) {
	seen := map[string]bool{}
	for h := Health(0); h < Healths; h++ {
		name := h.String()
		if name == "" || strings.HasPrefix(name, "HEALTH_") || seen[name] {
			t.Errorf("health %d is called %q", h, name)
		}
		seen[name] = true
	}
	if HealthUnknown != Healths-1 {
		t.Errorf("Healths is %d, the last state %d", Healths, HealthUnknown)
	}
	if got := Health(200).String(); got != "HEALTH_200" {
		t.Errorf("a value that is no state is called %q", got)
	}
}
