// Command pilotctl installs pilotd, and does by hand what pilotd does in a cluster.
//
//	pilotctl manifest          print the objects of an installation
//	pilotctl install           install pilotd into a cluster
//	pilotctl upgrade           bring an installation to this version, and to other values
//	pilotctl rollback          bring back what was before the last upgrade
//	pilotctl uninstall         take an installation away
//	pilotctl inject -f FILE    put proxies into the workloads of a file
//	pilotctl version           say which build this is
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pilotctl:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "pilotctl",
		Short:         "Install pilotd, and do by hand what it does in a cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(installCommands()...)
	root.AddCommand(injectCommand(), build.Command("pilotctl"))
	return root
}
