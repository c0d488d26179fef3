package page

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

func report() *scenario.Report {
	return &scenario.Report{Target: "<host>:1", Clients: 3, FirstError: "x", Ended: 1, Phases: []scenario.Phase{
		{Name: "connect", Distribution: []time.Duration{1, 2, 3}},
		{Name: "churn", Staleness: []measure.Latency{{Samples: 1, Median: 1e6, P99: 2e6, Last: 3e6},
			{Samples: 2, Median: 1e6, P99: 5e6, Last: 6e6}}}},
		Samples: []scenario.Sample{{Seconds: 1, Phase: "connect",
			Process: measure.Process{CPU: 1e9, Resident: 1 << 30}},
			{Seconds: 2, Phase: "churn", Process: measure.Process{CPU: 2e9, Resident: 2 << 30}}}}
}

func TestPageIsWholeAndSelfContained(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, report()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "<svg"); n != 6 {
		t.Error(n, "plots")
	}
	if strings.Contains(text, "<host>") || strings.Contains(text, "http") || strings.Contains(text, "<script") {
		t.Error("what is not escaped, or comes from elsewhere")
	}
	for _, want := range []string{"Staleness under churn", "1 streams ended", "GiB", "<td>churn</td>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(text[strings.Index(text, "<body>"):strings.Index(text, "</html>")])); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A report of little is a page too.
func TestPageOfNothing(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, &scenario.Report{}); err != nil || strings.Contains(b.String(), "<svg") {
		t.Error(err, b.String())
	}
}

// Lines lie within the plot, and ticks are few, round and reach what is drawn.
func TestAxes(t *testing.T) {
	for _, kind := range []quantity{number, seconds, duration, percent, bytes} {
		for v := 1e-6; v < 1e12; v *= 1.7 {
			ticks := axis{kind: kind, most: v}.ticks()
			if n := len(ticks); n < 2 || n > 7 || ticks[0] != 0 || ticks[n-1] < v || ticks[n-2] >= v {
				t.Fatal(kind, v, ticks)
			}
			labels := map[string]bool{}
			for _, tick := range ticks {
				label := axis{kind: kind, most: v}.label(tick)
				if labels[label] && v > 0.01 {
					t.Fatal(kind, v, label, "twice")
				}
				labels[label] = true
			}
		}
	}
	for v, want := range map[float64]string{0.25: "250 ms", 2: "2 s", 0.00002: "20 µs"} {
		if got := (axis{kind: duration}).label(v); got != want {
			t.Error(got, want)
		}
	}
	if got := (axis{kind: bytes}).label(1.5 * math.Pow(1024, 3)); got != "1.5 GiB" {
		t.Error(got)
	}
}

func TestBandsFollowPhases(t *testing.T) {
	got := bands(report())
	if len(got) != 2 || got[0] != (band{"connect", 0, 2}) || got[1] != (band{"churn", 2, 2}) {
		t.Error(got)
	}
}
