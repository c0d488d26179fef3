// Command loadtest puts the load of a mesh on a control plane, without the mesh: it makes a mesh of a given shape for
// the server to read, and is tens of thousands of its proxies. It aims at any xDS server. docs/loadtest.md says how.
//
//	loadtest populate --shape 1000x2 DIR                  or --kubeconfig FILE
//	loadtest run --dir DIR --target 127.0.0.1:15010 --clients 1000 --scenario endpoint,route
//	loadtest compare --dir DIR --target 127.0.0.1:15010 --pid PID
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetLogger(logr.Discard()) // What goes wrong is said once, by whoever asked for it.
	root := &cobra.Command{Use: "loadtest", Short: "Put the load of a mesh on a control plane", SilenceUsage: true,
		SilenceErrors: true}
	root.AddCommand(populateCommand(), runCommand(), compareCommand(), nullCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		os.Exit(1)
	}
}
