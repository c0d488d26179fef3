package main

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/loadtest/directory"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

func runCommand() *cobra.Command {
	var o scenario.Options
	var dir, shape, out string
	var quiet bool
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
			if err := place(&o, dir, shape); err != nil {
				return err
			}
			if !quiet {
				o.Progress = c.ErrOrStderr()
			}
			report, err := scenario.Run(c.Context(), o)
			if report == nil {
				return err
			}
			return errors.Join(err, report.Write(c.OutOrStdout()), save(report, out))
		},
	}
	f := c.Flags()
	f.StringVar(&o.Target, "target", "127.0.0.1:15010", "host:port of the server")
	f.IntVar(&o.Clients, "clients", 100, "how many sidecars; beyond the mesh's workloads they repeat")
	f.BoolVar(&o.Delta, "delta", false, "speak the incremental protocol")
	f.IntVar(&o.Dialing, "dialing", 100, "how many connect at the same moment; 0 is all")
	f.StringSliceVar(&o.Scenarios, "scenario", nil, "what follows the connect storm: endpoint, route, churn, stall, refuse, reconnect, idle")
	f.StringVar(&dir, "dir", "", "directory that populate wrote")
	f.StringVar(&shape, "shape", "small", "whose sidecars these are, without --dir")
	f.IntVar(&o.PID, "pid", 0, "process of the server, to measure its CPU time and memory")
	f.IntVar(&o.Changes, "changes", 5, "how many changes endpoint and route make")
	f.Float64Var(&o.Share, "share", 0.1, "part of the sidecars that stall or refuse")
	f.Float64Var(&o.Rate, "rate", 50, "endpoint changes a second of churn")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "how long churn and idle last")
	f.DurationVar(&o.Patience, "patience", time.Minute, "how long a change, or connecting, may take to be complete")
	f.StringVar(&out, "out", "", "file for the report as JSON")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress")
	return c
}

// place finds the mesh whose sidecars run.
func place(o *scenario.Options, dir, shape string) error {
	if dir != "" {
		d, err := directory.Open(dir)
		if err != nil {
			return err
		}
		o.Directory, o.Mesh = d, d.Mesh()
		return nil
	}
	s, err := mesh.Named(shape)
	o.Mesh = mesh.New(s)
	return err
}

// save writes the report as JSON.
func save(r *scenario.Report, file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
