// Command pilotctl installs pilotd into clusters, and injects proxies into files.
//
//	pilotctl manifest          print the objects of an installation
//	pilotctl install           install pilotd into a cluster
//	pilotctl upgrade           upgrade an installation to this version, or change its values
//	pilotctl rollback          undo the last upgrade
//	pilotctl uninstall         remove an installation
//	pilotctl inject -f FILE    add proxies to the workloads in a file
//	pilotctl version           print the version of this program
package main

import (
	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/program"
)

func main() { program.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	commands := append(installCommands(), injectCommand(), program.Version("pilotctl"))
	return program.Root("pilotctl", "pilotctl installs pilotd into clusters, and injects proxies into files.", commands...)
}
