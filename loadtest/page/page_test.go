package page

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

func TestPageIsWholeAndSelfContained(t *testing.T) {
	r := &scenario.Report{Target: "<host>:1", Clients: 3, Phases: []scenario.Phase{
		{Name: "connect", Distribution: []time.Duration{1, 2, 3}},
		{Name: "churn", Staleness: []measure.Latency{{Samples: 1, Median: 1e6, P99: 2e6, Last: 3e6}, {Samples: 2, Median: 1e6, P99: 5e6, Last: 6e6}}}},
		Samples: []scenario.Sample{{Seconds: 1, Process: measure.Process{CPU: 1e9, Resident: 1 << 30}}, {Seconds: 2, Process: measure.Process{CPU: 2e9, Resident: 2 << 30}}}}
	var b strings.Builder
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "<svg"); n != 4 {
		t.Error(n, "plots")
	}
	if strings.Contains(text, "<host>") || strings.Contains(text, "http") {
		t.Error("what is not escaped, or comes from elsewhere")
	}
	for _, p := range plots(r) {
		for d := xml.NewDecoder(strings.NewReader(string(p))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err, p)
			}
		}
	}
}
