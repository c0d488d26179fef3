package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/loadtest/page"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

func runCommand() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "run",
		Short: "Be the proxies of a mesh, and measure the server",
		Long: `Run connects simulated sidecars, gateways and proxyless clients to xDS servers and measures the connect storm; then, in order, each --scenario:

  endpoint  --changes times: an endpoint is added, and everybody gets it
  route     --changes times: a VirtualService is edited, and everybody gets it
  routes    --changes times: a VirtualService is added, and removed again
  churn     --rate endpoint changes a second for --duration
  soak      --changes endpoint changes, --rate a second; with --rate 0 as fast as everybody gets them
  rolling   --changes pods are replaced, one after the other; their sidecars vanish, and new ones connect
  stall     as route, while a --share of the clients does not read; the others are measured
  slow      as route, while a --share reads --read-rate bytes a second; the others are measured
  refuse    as route, which a --share refuses; the others are measured
  vanish    as route, after a --share has gone without a word; the others are measured
  reconnect everybody hangs up and comes back with what they have
  cut       all connections break; everybody comes back, after their back-off, with what they have
  kill      the first server is killed; its clients come back when it is there again, or move to the other --target servers
  idle      nothing happens for --duration

The changes are made in --dir, or in the API server of --kubeconfig, which "populate" filled and the server reads.`,
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
	f := c.Flags()
	s.register(f)
	s.registerRun(f)
	f.StringSliceVar(&s.Scenarios, "scenario", nil, "what follows the connect storm: "+strings.Join(scenario.Names(),
		", "))
	return c
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
