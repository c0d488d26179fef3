// Command pilotd is a control plane for Istio-style service meshes.
//
//	pilotd discovery [flags]   serve configuration to proxies
//	pilotd version             say which build this is
//
// The flags of "pilotd discovery" are those of "pilot-discovery discovery" where they have a meaning here, so that a
// deployment swaps the binary; others are accepted with a warning.
package main

import (
	// An image need not have the roots of the web, from where keys of issuers are fetched.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/gen"
)

func main() {
	program.Main(program.Root("pilotd", "A control plane for Istio-style service meshes", discoveryCommand(),
		program.Version("pilotd", "encoder="+gen.Encoder)))
}
