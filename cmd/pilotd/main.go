// Command pilotd is a control plane for Istio-style service meshes.
//
//	pilotd discovery [flags]   serve configuration to proxies
//	pilotd version             print the version of this program
//
// The flags of "pilotd discovery" are those of "pilot-discovery discovery" where they have a meaning here, so that a
// deployment swaps the binary; others are accepted with a warning.
package main

import (
	"github.com/spf13/cobra"
	// An image may lack the root certificates of the web, which fetching keys of issuers needs.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/gen"
)

func main() {
	program.Main(rootCommand())
}

func rootCommand() *cobra.Command {
	return program.Root("pilotd", `pilotd is a control plane for Istio-style service meshes. "pilotd discovery" takes the place of istiod.`,
		discoveryCommand(), program.Version("pilotd", "encoder="+gen.Encoder))
}
