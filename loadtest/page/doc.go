// Package page shows a report as one self-contained HTML page, fit to be pasted: the tables, the distribution of
// latencies of each phase, and what was seen over time, as SVG. It needs no script and nothing from elsewhere.
package page
