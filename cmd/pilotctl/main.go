// Command pilotctl does by hand what pilotd does in a cluster.
//
//	pilotctl inject -f FILE    put proxies into the workloads of a file
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := rootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "pilotctl:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "pilotctl",
		Short:         "Do by hand what pilotd does in a cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(injectCommand())
	return root
}
