package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/cmd/build"
	"github.com/pilotd/pilotd/deploy/install"
)

// installOptions are the settings of the commands that install. The names are those of helm.
type installOptions struct {
	install.Options
	files, sets []string
	wait        bool
	timeout     time.Duration
}

// installCommands returns manifest, install, upgrade, rollback and uninstall.
func installCommands() []*cobra.Command {
	return []*cobra.Command{manifestCommand(), installCommand(), upgradeCommand(), rollbackCommand(), uninstallCommand()}
}

const installLong = `The chart is part of this program; "helm" can go on with what pilotctl has installed. docs/operations.md of the
project says what each value means. There is no public image: hub names the registry that yours was pushed to.`

func manifestCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:     "manifest --set hub=REGISTRY [flags]",
		Short:   "Print the objects of an installation as YAML; no cluster is asked",
		Long:    "Print the objects of an installation as YAML, for kubectl apply; no cluster is asked.\n\n" + installLong,
		Example: `  pilotctl manifest --set hub=registry.example/mesh | kubectl apply --server-side -f -`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd, func(context.Context) (string, error) { return install.Render(o.Options) })
		},
	}
	o.registerValues(cmd.Flags())
	return cmd
}

func installCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "install --set hub=REGISTRY [flags]",
		Short: "Install pilotd into a cluster",
		Long:  "Install pilotd into a cluster.\n\n" + installLong,
		Example: `  pilotctl install --set hub=registry.example/mesh
  pilotctl install -n mesh -f values.yaml --set name=pilotd --set revision=canary --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, "installed", func(ctx context.Context) (string, error) {
				return install.Install(ctx, o.Options)
			})
		},
	}
	o.registerValues(cmd.Flags())
	o.registerCluster(cmd.Flags())
	return cmd
}

func upgradeCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "upgrade [flags]",
		Short: "Bring an installation to this version, and to other values",
		Long: `Bring an installation to this version, and to other values: those of the last time stay unless they are given anew,
or --reset-values forgets them. CRDs are left as they are.

` + installLong,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, "upgraded", func(ctx context.Context) (string, error) {
				return install.Upgrade(ctx, o.Options)
			})
		},
	}
	o.registerValues(cmd.Flags())
	o.registerCluster(cmd.Flags())
	cmd.Flags().BoolVar(&o.ResetValues, "reset-values", false, "forget the values of the last time")
	return cmd
}

func rollbackCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "rollback [flags]",
		Short: "Bring back what was before the last upgrade",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, "rolled back", func(context.Context) (string, error) {
				return "", install.Rollback(o.Options)
			})
		},
	}
	o.registerName(cmd.Flags())
	o.registerCluster(cmd.Flags())
	return cmd
}

func uninstallCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "uninstall [flags]",
		Short: "Take an installation away",
		Long: `Take an installation away: all that it made but CRDs and the namespace. What pilotd has made itself stays: the Secret
istio-ca-secret, ConfigMap istio-ca-root-cert in each namespace, and its Lease. So proxies that run trust each other
still, and a later installation goes on with the same authority.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, "uninstalled", func(context.Context) (string, error) {
				return install.Uninstall(o.Options)
			})
		},
	}
	o.registerName(cmd.Flags())
	o.registerCluster(cmd.Flags())
	return cmd
}

func (o *installOptions) registerName(f *pflag.FlagSet) {
	f.StringVarP(&o.Namespace, "namespace", "n", "istio-system", "namespace that pilotd runs in")
	f.StringVar(&o.Name, "name", "pilotd", "name of the installation: Helm's release")
}

func (o *installOptions) registerValues(f *pflag.FlagSet) {
	o.registerName(f)
	f.StringArrayVar(&o.sets, "set", nil, "a value, such as global.logAsJson=true; may be given several times")
	f.StringArrayVarP(&o.files, "values", "f", nil, "file of values; of several a later one lies over an earlier one")
	f.BoolVar(&o.SkipCRDs, "skip-crds", false,
		"leave out the kinds of Istio's API; those that are there are left as they are in any case")
}

func (o *installOptions) registerCluster(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; kubectl's when empty")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig; its current one when empty")
	f.BoolVar(&o.DryRun, "dry-run", false, "print what would be there (or, with uninstall, go), and change nothing")
	f.BoolVar(&o.wait, "wait", false, "wait until all of it is ready")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "for how long --wait waits")
}

// change runs do, which changes a cluster, and prints what was done.
func (o *installOptions) change(cmd *cobra.Command, done string, do func(context.Context) (string, error)) error {
	if o.wait {
		o.Wait = o.timeout
	}
	if o.DryRun {
		return o.run(cmd, do)
	}
	out := cmd.OutOrStdout()
	cmd.SetOut(io.Discard)
	if err := o.run(cmd, do); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s is %s in namespace %s\n", o.Name, done, o.Namespace)
	return err
}

// run runs do and prints its result.
func (o *installOptions) run(cmd *cobra.Command, do func(context.Context) (string, error)) (err error) {
	if o.Values, err = install.ReadValues(o.files, o.sets); err != nil {
		return err
	}
	if v := build.Version(); v != "devel" {
		o.Version = v
	}
	text, err := do(cmd.Context())
	if err != nil {
		return err
	}
	_, err = io.WriteString(cmd.OutOrStdout(), strings.TrimPrefix(text, "\n"))
	return err
}
