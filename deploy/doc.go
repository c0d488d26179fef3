// Package deploy embeds the Helm chart that installs pilotd. Package install installs it into a cluster.
package deploy

import (
	"embed"
	"io/fs"
)

//go:embed all:chart
var files embed.FS

// Chart returns the files of the chart, with Chart.yaml at the root.
func Chart() fs.FS {
	chart, err := fs.Sub(files, "chart")
	if err != nil {
		panic(err) // the name is a constant
	}
	return chart
}
