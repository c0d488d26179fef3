// Package page shows a report as one self-contained HTML page: the tables, and plots as SVG.
package page
