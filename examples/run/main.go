// Command run shows pilotd at work on one machine, without root and without a cluster:
// pilotd on a directory of YAML, two versions of a backend, and an Envoy as gateway.
//
//	curl ──> Envoy 127.0.0.1:18000 ──75%──> echo v1 127.0.0.11:9080
//	           ▲                   └─25%──> echo v2 127.0.0.12:9080
//	           │ xDS
//	         pilotd <── examples/mesh/*.yaml
//
// It is what `make run` starts. Everything listens on loopback addresses and ends with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// options are the command line.
type options struct {
	pilotd, envoy    string
	mesh, meshConfig string
	logs             string
}

func main() {
	var o options
	flag.StringVar(&o.pilotd, "pilotd", "pilotd", "the pilotd program")
	flag.StringVar(&o.envoy, "envoy", "envoy", "the Envoy program")
	flag.StringVar(&o.mesh, "mesh", "examples/mesh", "directory with the objects of the mesh")
	flag.StringVar(&o.meshConfig, "mesh-config", "examples/mesh-config.yaml", "the mesh configuration")
	flag.StringVar(&o.logs, "logs", ".cache/run", "directory for the programs' logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

// run starts everything, says what to try, and waits for ctx or the first failure.
func run(ctx context.Context, o options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return err
	}
	for version, addr := range map[string]string{"v1": "127.0.0.11:9080", "v2": "127.0.0.12:9080"} {
		backend, err := startEcho("echo "+version, addr)
		if err != nil {
			return err
		}
		defer backend.Close()
	}

	pilotd, err := start(o.logs, cancel, o.pilotd, "discovery", "--registries=",
		"--configDir="+o.mesh, "--meshConfig="+o.meshConfig,
		"--grpcAddr="+xdsAddr, "--httpAddr="+readyAddr, "--monitoringAddr="+monitoringAddr,
		"--secureGRPCAddr=", "--httpsAddr=")
	if err != nil {
		return err
	}
	defer pilotd.stop()
	if err := await(ctx, "http://"+readyAddr+"/ready", ""); err != nil {
		return err
	}

	bootstrap, err := writeBootstrap(o.logs)
	if err != nil {
		return err
	}
	envoy, err := start(o.logs, cancel, o.envoy, "-c", bootstrap, "--concurrency", "1", "--disable-hot-restart",
		"--drain-time-s", "1", "--parent-shutdown-time-s", "2", "-l", "warning")
	if err != nil {
		return err
	}
	defer envoy.stop()
	if err := await(ctx, "http://"+gatewayAddr+"/", publicHost); err != nil {
		return err
	}

	if err := explain(o); err != nil {
		return err
	}
	<-ctx.Done()
	fmt.Println("\nstopping")
	return context.Cause(ctx)
}
