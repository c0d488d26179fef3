package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

//go:embed page.html
var files embed.FS

// table is a table of the page.
type table struct {
	Columns []string
	Rows    [][]string
}

// Write writes the page of a report.
func Write(w io.Writer, r *scenario.Report) error {
	t, err := template.ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Report": r, "Phases": table{scenario.PhaseColumns(), r.PhaseRows()},
		"Types": table{scenario.TypeColumns(), r.TypeRows()}, "Remarks": r.Remarks(),
		"Latencies": draw(latencies(r)), "Staleness": draw(stale(r)), "Times": draw(times(r))})
}

// draw draws plots.
func draw(plots []plot) (out []template.HTML) {
	for i := range plots {
		out = append(out, template.HTML(plots[i].svg())) //nolint:gosec // made of numbers and of names that svg escapes
	}
	return out
}

// latencies returns the distributions of those phases that have one.
func latencies(r *scenario.Report) (out []plot) {
	for i := range r.Phases {
		p := &r.Phases[i]
		if len(p.Distribution) < 2 {
			continue
		}
		l := line{}
		for percent, d := range p.Distribution {
			l.points = append(l.points, point{d.Seconds(), float64(percent) * 100 / float64(len(p.Distribution)-1)})
		}
		last := len(p.Distribution) - 1
		about := fmt.Sprintf("median %s, p99 %s, last %s", measure.Short(p.Distribution[last/2]),
			measure.Short(p.Distribution[last*99/100]), measure.Short(p.Distribution[last]))
		out = append(out, plot{title: p.Name, about: about, width: 400, height: 190, x: axis{kind: duration},
			y: axis{kind: percent, most: 100}, lines: []line{l}})
	}
	return out
}

// stale returns the staleness by second of those phases whose changes did not wait for each other.
func stale(r *scenario.Report) (out []plot) {
	ranks := []struct {
		name string
		of   func(measure.Latency) time.Duration
	}{
		{"median", func(l measure.Latency) time.Duration { return l.Median }},
		{"p99", func(l measure.Latency) time.Duration { return l.P99 }},
		{"last", func(l measure.Latency) time.Duration { return l.Last }},
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		if len(p.Staleness) == 0 {
			continue
		}
		drawn := plot{title: "Staleness under " + p.Name, about: "of the receipts of each second", width: 620,
			height: 230, x: axis{kind: seconds}, y: axis{kind: duration}}
		for _, rank := range ranks {
			l := line{name: rank.name}
			for second, s := range p.Staleness {
				if s.Samples > 0 {
					l.points = append(l.points, point{float64(second), rank.of(s).Seconds()})
				}
			}
			drawn.lines = append(drawn.lines, l)
		}
		out = append(out, drawn)
	}
	return out
}

// times returns what was seen every second.
func times(r *scenario.Report) (out []plot) {
	if len(r.Samples) < 2 {
		return nil
	}
	var cpu, resident, heap, received, streams line
	resident.name, heap.name = "resident", "Go's heap"
	for i, s := range r.Samples {
		streams.add(s.Seconds, float64(s.Streams))
		if s.Resident > 0 {
			resident.add(s.Seconds, float64(s.Resident))
		}
		if s.Heap > 0 {
			heap.add(s.Seconds, float64(s.Heap))
		}
		if i == 0 {
			continue
		}
		before := r.Samples[i-1]
		span := s.Seconds - before.Seconds
		if span <= 0 {
			continue
		}
		received.add(s.Seconds, float64(s.Bytes-before.Bytes)/span)
		if s.CPU >= before.CPU && before.CPU > 0 {
			cpu.add(s.Seconds, (s.CPU-before.CPU).Seconds()/span)
		}
	}
	for _, p := range []plot{
		{title: "CPU of the server", about: "cores", y: axis{kind: number}, lines: []line{cpu}},
		{title: "Memory of the server", y: axis{kind: bytes}, lines: []line{resident, heap}},
		{title: "Received by the clients", about: "each second", y: axis{kind: bytes}, lines: []line{received}},
		{title: "Streams", about: "open", y: axis{kind: number}, lines: []line{streams}},
	} {
		p.width, p.height, p.x, p.bands = 1260, 200, axis{kind: seconds}, bands(r)
		if p.drop(); len(p.lines) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// bands returns the phases over time.
func bands(r *scenario.Report) (out []band) {
	for i, s := range r.Samples {
		if n := len(out); n == 0 || out[n-1].name != s.Phase {
			from := s.Seconds
			if i == 0 {
				from = 0
			} else {
				out[n-1].to = from
			}
			out = append(out, band{name: s.Phase, from: from})
		}
		out[len(out)-1].to = s.Seconds
	}
	return out
}
