// Command pilotd is a control plane for Istio-style service meshes.
//
//	pilotd discovery [flags]   serve configuration to proxies
//	pilotd version             say which build this is
//
// The flags of "pilotd discovery" are those of "pilot-discovery discovery" where they have a meaning here, so that a
// deployment swaps the binary; others are accepted with a warning.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	// An image need not have the roots of the web, from where keys of issuers are fetched.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/pilotd/pilotd/cmd/build"
	"github.com/pilotd/pilotd/gen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "pilotd",
		Short:         "A control plane for Istio-style service meshes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(discoveryCommand(), build.Command("pilotd", "encoder="+gen.Encoder))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pilotd:", err)
		os.Exit(1)
	}
}
