// Command loadtest puts the load of a mesh on a control plane, without the mesh: it writes the objects of a mesh of a
// given shape for the server to read, and simulates tens of thousands of its proxies. It works with any xDS server.
// docs/loadtest.md explains it.
//
//	loadtest populate --shape 1000x2 DIR                  or --kubeconfig FILE
//	loadtest run --dir DIR --target 127.0.0.1:15010 --clients 1000 --scenario endpoint,route
//	loadtest compare --dir DIR --target 127.0.0.1:15010 --pid PID
package main

import (
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/pilotd/pilotd/cmd/program"
)

const about = `loadtest puts the load of a mesh on an xDS server, without the mesh. "populate" writes the objects of a mesh, which
the server reads; "run" simulates the proxies of that mesh and measures how long changes take to reach them; "compare"
relates the results to those of a bare gRPC server that sends the same bytes.

  loadtest populate --shape 1000x2 ./mesh
  pilotd discovery --registries= --configDir ./mesh
  loadtest run --dir ./mesh --clients 1000 --scenario endpoint,route --pid PID

docs/loadtest.md of the project explains the measurements.`

func main() {
	klog.SetLogger(logr.Discard()) // errors of client-go are returned, too, and reported once
	program.Main(rootCommand())
}

func rootCommand() *cobra.Command {
	return program.Root("loadtest", about, populateCommand(), runCommand(), compareCommand(), nullCommand())
}
