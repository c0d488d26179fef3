// Command pilot-agent is what runs beside an application, or as a gateway, in pods of the mesh.
//
//	pilot-agent proxy sidecar|router    start Envoy and serve it: certificates, configuration, probes, metrics
//	pilot-agent iptables                write the rules that send the pod's traffic through the proxy
//	pilot-agent wait                    wait until the proxy is ready
//	pilot-agent request METHOD PATH     ask the proxy's admin page, or the agent
//	pilot-agent version                 say which build this is
//
// Commands and flags are those of Istio's agent, so that pods that injection wrote for either run with this one.
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
		fmt.Fprintln(os.Stderr, "pilot-agent:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "pilot-agent",
		Short:         "What runs beside an application, or as a gateway, in pods of the mesh",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(proxyCommand(), captureCommand(), waitCommand(), requestCommand(), build.Command("pilot-agent"))
	return root
}
