package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/loadtest/page"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

func runCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "run",
		Short: "Simulate the proxies of a mesh, and measure the server",
		Long: `Connect simulated sidecars, gateways and proxyless gRPC clients to xDS servers and measure how long that takes; then run
each --scenario, in order:

  endpoint   add an endpoint, --changes times, and wait until every client has it
  route      edit a VirtualService, --changes times, and wait until every client has it
  routes     add a VirtualService and remove it again, --changes times
  churn      change endpoints --rate times a second, for --duration
  soak       change endpoints --changes times, --rate times a second; --rate 0: as fast as every client gets them
  rolling    replace --changes pods, one after the other; their sidecars vanish, and new ones connect
  stall      like route, while a --share of the clients does not read; only the others are measured
  slow       like route, while a --share reads only --read-rate bytes a second; only the others are measured
  refuse     like route, but a --share refuses (NACKs) the change; only the others are measured
  vanish     like route, after a --share has gone without closing connections; only the others are measured
  reconnect  every client disconnects, and comes back with what it has
  cut        all connections break; every client comes back after its back-off, with what it has
  kill       kill the first server; its clients come back once it is started again, or move to the other --target
  idle       nothing changes for --duration

Changes are made in --dir, or in the API server of --kubeconfig: where "populate" wrote, and the server reads.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(c); err != nil {
				return err
			}
			report, err := scenario.Run(c.Context(), s.Options)
			if report == nil {
				return err
			}
			return errors.Join(err, report.Write(c.OutOrStdout()), save(report, s.out), savePage(report, s.html))
		},
	}
	return program.Explain(c, slices.Insert(s.sections(), 0, program.Flags("What to run", s.registerRun))...)
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
