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
	"github.com/pilotd/pilotd/cmd/program"
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

const installLong = `The Helm chart is part of this program, and "helm" can manage what pilotctl has installed. docs/operations.md of the
project explains the values. There is no public image: the value hub names the registry that yours was pushed to.`

func manifestCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:     "manifest --set hub=REGISTRY [flags]",
		Short:   "Print the objects of an installation as YAML, without asking a cluster",
		Long:    "Print the objects of an installation as YAML for kubectl, without asking a cluster.\n\n" + installLong,
		Example: `  pilotctl manifest --set hub=registry.example/mesh | kubectl apply --server-side -f -`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd, func(context.Context) (string, error) { return install.Render(o.Options) })
		},
	}
	return program.Explain(cmd, o.what())
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
	return program.Explain(cmd, o.what(), o.where())
}

func upgradeCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "upgrade [flags]",
		Short: "Upgrade an installation to this version, or change its values",
		Long: `Upgrade an installation to the version of this program, or change its values. Values of the last time stay unless
--set or --values replaces them, or --reset-values drops them. CRDs are not changed.

` + installLong,
		Example: `  pilotctl upgrade --set autoscaleMin=2`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, "upgraded", func(ctx context.Context) (string, error) {
				return install.Upgrade(ctx, o.Options)
			})
		},
	}
	what := o.what()
	what.Flags.BoolVar(&o.ResetValues, "reset-values", false, "drop the values of the last time")
	return program.Explain(cmd, what, o.where())
}

func rollbackCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "rollback [flags]",
		Short: "Undo the last upgrade",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, "rolled back", func(context.Context) (string, error) {
				return "", install.Rollback(o.Options)
			})
		},
	}
	return program.Explain(cmd, program.Flags("Which installation", o.registerName), o.where())
}

func uninstallCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use:   "uninstall [flags]",
		Short: "Remove an installation",
		Long: `Remove an installation: everything that it created, except CRDs and the namespace. What pilotd itself has created
stays too: Secret istio-ca-secret, ConfigMap istio-ca-root-cert in each namespace, and its Lease. This way running
proxies still trust each other, and a later installation uses the same authority.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, "uninstalled", func(context.Context) (string, error) {
				return install.Uninstall(o.Options)
			})
		},
	}
	return program.Explain(cmd, program.Flags("Which installation", o.registerName), o.where())
}

// what returns the flags that select what is installed, and where the flags for the cluster.
func (o *installOptions) what() program.Section {
	return program.Flags("What to install", o.registerValues)
}

func (o *installOptions) where() program.Section {
	return program.Flags("In which cluster, and how", o.registerCluster)
}

func (o *installOptions) registerName(f *pflag.FlagSet) {
	f.StringVarP(&o.Namespace, "namespace", "n", "istio-system", "namespace that pilotd runs in")
	f.StringVar(&o.Name, "name", "pilotd", "name of the installation (the Helm release)")
}

func (o *installOptions) registerValues(f *pflag.FlagSet) {
	o.registerName(f)
	f.StringArrayVar(&o.sets, "set", nil, "one `value`, such as global.logAsJson=true; may be given several times")
	f.StringArrayVarP(&o.files, "values", "f", nil, "`file` with values; may be given several times, and later files override earlier ones")
	f.BoolVar(&o.SkipCRDs, "skip-crds", false,
		"do not install the CRDs of Istio's API; existing ones are never changed")
}

func (o *installOptions) registerCluster(f *pflag.FlagSet) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster; empty: the one that kubectl uses")
	f.StringVar(&o.Context, "context", "", "context in the kubeconfig; empty: the current one")
	f.BoolVar(&o.DryRun, "dry-run", false, "print the objects that would be installed (or removed, with uninstall), and change nothing")
	f.BoolVar(&o.wait, "wait", false, "wait until everything is ready")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long --wait waits")
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
