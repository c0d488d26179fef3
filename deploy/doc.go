// Package deploy has the Helm chart that installs pilotd, as it is in this repository. Package install puts it into a
// cluster.
package deploy

import (
	"embed"
	"io/fs"
)

//go:embed all:chart
var files embed.FS

// Chart is the chart's files; Chart.yaml is at its root.
func Chart() fs.FS {
	chart, err := fs.Sub(files, "chart")
	if err != nil {
		panic(err) // the name is well-formed
	}
	return chart
}
