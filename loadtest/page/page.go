package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

//go:embed page.html
var files embed.FS

// Write writes the page of a report.
func Write(w io.Writer, r *scenario.Report) error {
	t, err := template.ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	var tables strings.Builder
	if err := r.Write(&tables); err != nil {
		return err
	}
	return t.Execute(w, map[string]any{"Report": r, "Tables": tables.String(), "Plots": plots(r)})
}

// plots are those for which the report has data.
func plots(r *scenario.Report) (out []template.HTML) {
	add := func(p plot) {
		if len(p.lines) > 0 {
			out = append(out, template.HTML(p.svg())) //nolint:gosec // made of numbers and of names that svg escapes
		}
	}
	latency := plot{title: "Latency of each phase", x: "% of the sidecars", y: "ms"}
	for _, p := range r.Phases {
		if len(p.Distribution) > 0 {
			l := line{name: p.Name}
			for percent, d := range p.Distribution {
				l.points = append(l.points, point{float64(percent), milliseconds(d)})
			}
			latency.lines = append(latency.lines, l)
		}
	}
	add(latency)
	for _, p := range r.Phases {
		if len(p.Staleness) > 0 {
			add(staleness(p))
		}
	}
	cpu, memory := plot{title: "CPU of the server", x: "s", y: "cores"}, plot{title: "Memory of the server", x: "s", y: "MiB"}
	var used, resident []point
	for i, s := range r.Samples {
		if s.Resident == 0 {
			continue
		}
		resident = append(resident, point{s.Seconds, float64(s.Resident) / (1 << 20)})
		if i > 0 {
			before := r.Samples[i-1]
			used = append(used, point{s.Seconds, (s.CPU - before.CPU).Seconds() / (s.Seconds - before.Seconds)})
		}
	}
	if len(used) > 0 {
		cpu.lines, memory.lines = []line{{"CPU", used}}, []line{{"resident", resident}}
	}
	add(cpu)
	add(memory)
	return out
}

func staleness(p scenario.Phase) plot {
	ranks := []struct {
		name string
		of   func(measure.Latency) time.Duration
	}{
		{"median", func(l measure.Latency) time.Duration { return l.Median }},
		{"p99", func(l measure.Latency) time.Duration { return l.P99 }},
		{"last", func(l measure.Latency) time.Duration { return l.Last }},
	}
	out := plot{title: "Staleness under " + p.Name, x: "s", y: "ms"}
	for _, rank := range ranks {
		l := line{name: rank.name}
		for second, s := range p.Staleness {
			if s.Samples > 0 {
				l.points = append(l.points, point{float64(second), milliseconds(rank.of(s))})
			}
		}
		out.lines = append(out.lines, l)
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// plot is a few lines over the same axes.
type plot struct {
	title, x, y string
	lines       []line
}

type line struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

const width, height, left, bottom = 640, 260, 60, 40

// svg draws the plot; both axes begin at 0.
func (p *plot) svg() string {
	maxX, maxY := 1e-9, 1e-9
	for _, l := range p.lines {
		for _, at := range l.points {
			maxX, maxY = max(maxX, at.x), max(maxY, at.y)
		}
	}
	x := func(v float64) float64 { return left + v/maxX*(width-left-20) }
	y := func(v float64) float64 { return height - bottom - v/maxY*(height-bottom-30) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img"><text x="%d" y="16" class="title">%s</text>`, width, height, left, template.HTMLEscapeString(p.title))
	for i := range 5 {
		vx, vy := maxX*float64(i)/4, maxY*float64(i)/4
		fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/><text class="y" x="%d" y="%.1f">%.3g</text><text class="x" x="%.1f" y="%d">%.3g</text>`,
			left, y(vy), width-20, left-6, y(vy)+4, vy, x(vx), height-bottom+16, vx)
	}
	fmt.Fprintf(&b, `<text class="y" x="%d" y="16">%s</text><text class="x" x="%d" y="%d">%s</text>`, left-6, template.HTMLEscapeString(p.y), width/2, height-6, template.HTMLEscapeString(p.x))
	for i, l := range p.lines {
		var path []string
		for _, at := range l.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(at.x), y(at.y)))
		}
		fmt.Fprintf(&b, `<polyline class="line c%d" points="%s"/><text class="c%d" x="%d" y="%d">%s</text>`, i%6, strings.Join(path, " "), i%6, left+8, 34+14*i, template.HTMLEscapeString(l.name))
	}
	return b.String() + "</svg>"
}
