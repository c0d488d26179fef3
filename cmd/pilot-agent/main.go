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
	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/program"
)

func main() { program.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	return program.Root("pilot-agent", "What runs beside an application, or as a gateway, in pods of the mesh",
		proxyCommand(), captureCommand(), waitCommand(), requestCommand(), program.Version("pilot-agent"))
}
