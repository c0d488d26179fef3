// Command pilot-agent runs Envoy in a pod of the mesh, as the sidecar of an application or as a gateway.
//
//	pilot-agent proxy sidecar|router    run Envoy, and serve its certificates, configuration, probes and metrics
//	pilot-agent iptables                write the rules that send the pod's traffic through the proxy
//	pilot-agent wait                    wait until the proxy is ready
//	pilot-agent request METHOD PATH     send a request to Envoy's admin page, or to the agent
//	pilot-agent version                 print the version of this program
//
// Commands and flags are those of Istio's agent, so that pods injected for that agent also run with this one.
package main

import (
	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/program"
)

func main() { program.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	return program.Root("pilot-agent", `pilot-agent runs Envoy in a pod of the mesh, as the sidecar of an application or as a gateway.

Commands and flags are those of Istio's agent. docs/agent.md of the project lists the environment variables.`,
		proxyCommand(), captureCommand(), waitCommand(), requestCommand(), program.Version("pilot-agent"))
}
