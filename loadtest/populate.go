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

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/loadtest/cluster"
	"github.com/pilotd/pilotd/loadtest/directory"
	"github.com/pilotd/pilotd/loadtest/mesh"
)

// population holds the flags of populate.
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
		Short: "Write the objects of a mesh into a directory or an API server",
		Long: `Write the objects of a mesh of a given shape, as YAML files into DIR, or into the API server of --kubeconfig. The same
shape and seed give the same objects.

In an API server all objects get the label pilotd.io/loadtest. A further populate writes only what differs, and removes
what does not belong to the mesh; --delete removes everything with the label. Other objects are not touched. The API
server must run no controllers for pods and nodes, because no kubelet runs these pods.`,
		Example: `  loadtest populate --shape 1000x2 ./mesh
  loadtest populate --list`,
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
	return program.Explain(c, program.Flags("Mesh", p.registerMesh), program.Flags("API server", p.registerServer))
}

func (p *population) registerMesh(f *pflag.FlagSet) {
	f.StringVar(&p.shape, "shape", "small", "`shape` of the mesh: the name of a file, or "+strings.Join(mesh.Names(), ", "))
	f.Uint64Var(&p.seed, "seed", 0, "`number` that selects one of the meshes of that shape; not given: the shape's own")
	f.BoolVar(&p.list, "list", false, "list the shapes")
	f.BoolVarP(&p.quiet, "quiet", "q", false, "do not print progress")
}

func (p *population) registerServer(f *pflag.FlagSet) {
	registerCluster(f, &p.Options)
	f.StringVar(&p.CRDs, "crds", "",
		"`file` with Istio's CRDs, for a server without them; empty: create CRDs that accept everything")
	f.BoolVar(&p.delete, "delete", false, "remove everything that populate has created")
}

// registerCluster defines the flags for an API server.
func registerCluster(f *pflag.FlagSet, o *cluster.Options) {
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the API server with the mesh")
	f.StringVar(&o.Context, "context", "", "context in the kubeconfig; empty: the current one")
	f.IntVar(&o.Workers, "workers", 64, "number of requests to the API server at the same time")
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

// tell makes populate and remove write their progress to w.
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

// listShapes prints the shapes and their sizes.
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
