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
	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/program"
)

func main() { program.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	commands := append(installCommands(), injectCommand(), program.Version("pilotctl"))
	return program.Root("pilotctl", "Install pilotd, and do by hand what it does in a cluster", commands...)
}
