package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/loadtest/cluster"
	"github.com/pilotd/pilotd/loadtest/directory"
	"github.com/pilotd/pilotd/loadtest/mesh"
)

// population is what populate is asked for.
type population struct {
	cluster.Options
	shape  string
	seed   uint64
	list   bool
	delete bool
	quiet  bool
}

func populateCommand() *cobra.Command {
	var p population
	c := &cobra.Command{
		Use:   "populate [DIR]",
		Short: "Make a mesh: a directory of YAML, or objects in an API server",
		Long: `Populate writes the objects of a mesh of a given shape: into DIR, as YAML, or into the API server of --kubeconfig. The same shape and seed
give the same objects.

In an API server everything has the label pilotd.io/loadtest. A second populate writes what differs and removes what is too much; --delete
removes all that populate made. Nothing else is touched. There must be no controllers that care for pods and nodes: nobody runs these pods.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			inCluster := c.Flags().Changed("kubeconfig") || c.Flags().Changed("context")
			if p.list {
				return listShapes(c.OutOrStdout())
			}
			if inCluster == (len(args) == 1) {
				return errors.New("populate needs a directory or --kubeconfig, and not both")
			}
			if p.delete {
				if !inCluster {
					return errors.New("--delete is for what is in an API server: a directory can be removed as it is")
				}
				return p.remove(c.Context(), c)
			}
			s, err := mesh.Find(p.shape)
			if err != nil {
				return err
			}
			if c.Flags().Changed("seed") {
				s.Seed = p.seed
			}
			if inCluster {
				return p.populate(c.Context(), c, s)
			}
			d, err := directory.Write(args[0], s)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", args[0], summary(d.Mesh()))
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&p.shape, "shape", "small", "what mesh: a file of yours, or "+strings.Join(mesh.Names(), ", "))
	f.Uint64Var(&p.seed, "seed", 0, "which of the meshes of that shape; the shape's own by default")
	f.BoolVar(&p.list, "list", false, "say what shapes there are")
	registerCluster(f, &p.Options)
	f.StringVar(&p.CRDs, "crds", "",
		"file with Istio's CRDs, for a server that lacks them; without it ones are made that let everything in")
	f.BoolVar(&p.delete, "delete", false, "remove from the API server all that populate made")
	f.BoolVarP(&p.quiet, "quiet", "q", false, "no progress")
	return c
}

// registerCluster registers the flags that say which API server.
func registerCluster(f *pflag.FlagSet, o *cluster.Options) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the API server whose mesh it is")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig; the current one by default")
	f.IntVar(&o.Workers, "workers", 64, "how many requests to the API server are under way at the same time")
}

func (p *population) populate(ctx context.Context, c *cobra.Command, s mesh.Shape) error {
	began := time.Now()
	p.tell(c.ErrOrStderr(), began)
	done, err := cluster.Populate(ctx, p.Options, s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", summary(mesh.New(s)), tally(done, time.Since(began)))
	return err
}

func (p *population) remove(ctx context.Context, c *cobra.Command) error {
	began := time.Now()
	p.tell(c.ErrOrStderr(), began)
	done, err := cluster.Delete(ctx, p.Options)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), tally(done, time.Since(began)))
	return err
}

// tell lets progress be written.
func (p *population) tell(w io.Writer, began time.Time) {
	if p.quiet {
		return
	}
	p.Progress = func(now cluster.Progress) {
		fmt.Fprintf(w, "%s of %d\n", tally(now, time.Since(began)), now.Total)
	}
}

func tally(p cluster.Progress, took time.Duration) string {
	return fmt.Sprintf("%d objects written, %d kept, %d removed in %.1f s", p.Written, p.Kept, p.Removed,
		took.Seconds())
}

func summary(m *mesh.Mesh) string {
	text := fmt.Sprintf("%d services, %d workloads", m.Size(), m.Workloads())
	if n := m.Gateways(); n > 0 {
		text += fmt.Sprintf(", %d gateways", n)
	}
	return text
}

// listShapes describes the shapes that there are.
func listShapes(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "shape\tservices\tworkloads\tgateways\t")
	for _, name := range mesh.Names() {
		s, err := mesh.Named(name)
		if err != nil {
			return err
		}
		m := mesh.New(s)
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", name, m.Size(), m.Workloads(), m.Gateways(), s.About)
	}
	return t.Flush()
}
