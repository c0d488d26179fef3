package main

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/loadtest/directory"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/page"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

// settings are the flags of run and compare.
type settings struct {
	scenario.Options
	dir, shape, out, html string
	quiet                 bool
}

func (s *settings) register(f *pflag.FlagSet) {
	f.StringVar(&s.Target, "target", "127.0.0.1:15010", "host:port of the server")
	f.IntVar(&s.Clients, "clients", 100, "how many sidecars; beyond the mesh's workloads they repeat")
	f.BoolVar(&s.Delta, "delta", false, "speak the incremental protocol")
	f.IntVar(&s.Dialing, "dialing", 100, "how many connect at the same moment; 0 is all")
	f.StringVar(&s.dir, "dir", "", "directory that populate wrote")
	f.IntVar(&s.PID, "pid", 0, "process of the server, to measure its CPU time and memory")
	f.IntVar(&s.Changes, "changes", 5, "how many changes endpoint, route, stall and refuse make")
	f.DurationVar(&s.Patience, "patience", time.Minute, "how long a change, or connecting, may take to be complete")
	f.StringVar(&s.out, "out", "", "file for the report as JSON")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "no progress")
}

func runCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "run",
		Short: "Be the sidecars of a mesh, and measure the server",
		Long: `Run connects simulated sidecars to an xDS server in plain text and measures the connect storm; then, in order, each --scenario:

  endpoint  --changes times: an endpoint is added, and everybody gets it
  route     --changes times: a VirtualService is edited, and everybody gets it
  churn     --rate endpoint changes a second for --duration
  stall     the same as route, while a --share of the sidecars does not read; the others are measured
  refuse    the same as route, which a --share of the sidecars refuses; the others are measured
  reconnect everybody hangs up and comes back with what they have
  idle      nothing happens for --duration

The changes are made in --dir, which "populate" wrote and the server reads.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.place(c); err != nil {
				return err
			}
			report, err := scenario.Run(c.Context(), s.Options)
			if report == nil {
				return err
			}
			return errors.Join(err, report.Write(c.OutOrStdout()), save(report, s.out), savePage(report, s.html))
		},
	}
	f := c.Flags()
	s.register(f)
	f.StringVar(&s.html, "html", "", "file for the report as a page with plots")
	f.StringVar(&s.shape, "shape", "small", "whose sidecars these are, without --dir")
	f.StringSliceVar(&s.Scenarios, "scenario", nil, "what follows the connect storm: endpoint, route, churn, stall, refuse, reconnect, idle")
	f.Float64Var(&s.Share, "share", 0.1, "part of the sidecars that stall or refuse")
	f.Float64Var(&s.Rate, "rate", 50, "endpoint changes a second of churn")
	f.DurationVar(&s.Duration, "duration", 10*time.Second, "how long churn and idle last")
	return c
}

// place finds the mesh whose sidecars run.
func (s *settings) place(c *cobra.Command) error {
	if !s.quiet {
		s.Progress = c.ErrOrStderr()
	}
	if s.dir != "" {
		d, err := directory.Open(s.dir)
		if err != nil {
			return err
		}
		s.Edits, s.Mesh = d, d.Mesh()
		return nil
	}
	shape, err := mesh.Find(s.shape)
	s.Mesh = mesh.New(shape)
	return err
}

// save writes a report as JSON.
func save(report any, file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// savePage writes a report as HTML.
func savePage(r *scenario.Report, file string) error {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(page.Write(f, r), f.Close())
}
