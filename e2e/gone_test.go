package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
)

// TestNothingIsLeftOfThoseWhoWent has Envoys come and go: pilotd forgets them.
func TestNothingIsLeftOfThoseWhoWent(t *testing.T) {
	w := newWorld(t, inDirectory, baseMesh()+weights(75, 25))
	for _, c := range []caller{
		w.sidecar(clientDelta(), parts.Delta, w.pilotd.Address()), w.sidecar(clientSotW(), parts.SotW,
			w.pilotd.Address()),
	} {
		c.envoy.AwaitReady()
		c.envoy.Stop()
	}
	parts.Eventually(t, "nobody is connected", func() error {
		page, err := w.pilotd.Debug("/debug/syncz")
		if err == nil && strings.Contains(page, "client-") {
			err = fmt.Errorf("still there: %.600s", page)
		}
		return err
	})
}
