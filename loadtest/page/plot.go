package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// plot is a few lines over the same axes.
type plot struct {
	title, about  string
	width, height int
	x, y          axis
	lines         []line
	bands         []band
}

type line struct {
	name   string
	points []point
}

func (l *line) add(x, y float64) { l.points = append(l.points, point{x, y}) }

type point struct{ x, y float64 }

// band is a part of the x axis that has a name.
type band struct {
	name     string
	from, to float64
}

// Margins.
const left, right, top, bottom = 62, 26, 40, 24

// letter is about as wide as one letter of a label.
const letter = 6.2

// drop leaves out lines without points.
func (p *plot) drop() {
	p.lines = slices.DeleteFunc(p.lines, func(l line) bool { return len(l.points) == 0 })
}

// svg draws the plot.
func (p *plot) svg() string {
	xs, ys := p.fit()
	x := func(v float64) float64 { return left + v/xs[len(xs)-1]*float64(p.width-left-right) }
	y := func(v float64) float64 {
		return float64(p.height-bottom) - v/ys[len(ys)-1]*float64(p.height-bottom-top)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" width="%d" role="img"><text x="%d" y="14" class="title">%s</text>`,
		p.width, p.height, p.width, left, escape(p.title))
	fmt.Fprintf(&b, `<text x="%.0f" y="14" class="about">%s</text>`, left+letter*1.25*float64(len(p.title))+10,
		escape(p.about))
	for i, s := range p.bands {
		width := x(s.to) - x(s.from)
		fmt.Fprintf(&b, `<rect class="band b%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`, i%2, x(s.from), top-12,
			width, p.height-bottom-top+12)
		if width > letter*float64(len(s.name)) {
			fmt.Fprintf(&b, `<text class="band" x="%.1f" y="%d">%s</text>`, x(s.from)+width/2, top-3, escape(s.name))
		}
	}
	for _, v := range ys {
		fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/><text class="y" x="%d" y="%.1f">%s</text>`, left, y(v),
			p.width-right, left-6, y(v)+4, p.y.label(v))
	}
	for _, v := range xs {
		fmt.Fprintf(&b, `<text class="x" x="%.1f" y="%d">%s</text>`, x(v), p.height-bottom+15, p.x.label(v))
	}
	p.draw(&b, x, y)
	return b.String() + "</svg>"
}

// fit fits the axes to the lines, and returns their ticks.
func (p *plot) fit() (xs, ys []float64) {
	for _, l := range p.lines {
		for _, at := range l.points {
			p.x.most, p.y.most = max(p.x.most, at.x), max(p.y.most, at.y)
		}
	}
	p.x.most, p.y.most = max(p.x.most, 1e-6), max(p.y.most, 1e-6)
	return p.x.ticks(), p.y.ticks()
}

// draw draws the lines, and what each is called where there are several.
func (p *plot) draw(b *strings.Builder, x, y func(float64) float64) {
	at := float64(p.width - right)
	for i, l := range slices.Backward(p.lines) {
		var path []string
		for _, at := range l.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(at.x), y(at.y)))
		}
		fmt.Fprintf(b, `<polyline class="line c%d" points="%s"/>`, i, strings.Join(path, " "))
		if len(p.lines) > 1 {
			at -= letter*float64(len(l.name)) + 4
			fmt.Fprintf(b, `<text class="c%d" x="%.0f" y="14">%s</text><path class="line c%d" d="M%.0f 10h14"/>`, i, at,
				escape(l.name), i, at-18)
			at -= 28
		}
	}
}

func escape(s string) string { return template.HTMLEscapeString(s) }
