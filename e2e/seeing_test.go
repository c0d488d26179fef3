package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/xdstype"
)

// TestSeeingInside reads the pages that operators and istioctl read, while an Envoy is
// connected.
func TestSeeingInside(t *testing.T) {
	w := newWorld(t, inDirectory, baseMesh()+weights(75, 25))
	w.backends()
	c := w.sidecar(clientDelta(), parts.Delta, w.pilotd.Address())
	c.envoy.AwaitReady()
	for path, shown := range map[string][]string{
		"/metrics": {
			"pilot_xds", "pilot_xds_pushes", "pilot_proxy_convergence_time_bucket", "pilot_services",
			"pilot_proxy_queue_time", "pilot_push_triggers", "process_cpu_seconds_total",
		},
		"/debug/syncz":     {"client-delta.shop"},
		"/debug/endpointz": {webHost, webV1().ip},
		"/debug/registryz": {webHost, webVIP},
		"/debug/config_dump?proxyID=client-delta.shop&include_eds": {
			"outbound|80|v1|" + webHost, "virtualOutbound", webV2a().ip,
			xdstype.ClusterURL,
		},
		"/debug/pprof/goroutine?debug=1": {"goroutine profile"},
	} {
		t.Run(path, func(t *testing.T) { eventuallyShows(t, w.pilotd, path, shown) })
	}
}

// eventuallyShows waits until the page shows all of that.
func eventuallyShows(t *testing.T, p *parts.Pilotd, path string, all []string) {
	t.Helper()
	parts.Eventually(t, path, func() error {
		page, err := p.Debug(path)
		if err != nil {
			return err
		}
		for _, part := range all {
			if !strings.Contains(page, part) {
				return fmt.Errorf("%q is not on the page: %.500s", part, page)
			}
		}
		return nil
	})
}
