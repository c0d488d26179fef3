package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/loadtest/cluster"
	"github.com/pilotd/pilotd/loadtest/directory"
	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/scenario"
	"github.com/pilotd/pilotd/loadtest/wire"
)

// settings are the flags of run and compare.
type settings struct {
	scenario.Options
	targets, metrics []string
	pids             []int
	receive          int
	secrets          wire.Secrets
	tls              bool
	token, authority string
	issuer           issuer
	clients          string
	dir, shape       string
	cluster          cluster.Options
	out, html        string
	quiet            bool
}

// sections returns the flags that run and compare have in common, in the order of their help.
func (s *settings) sections() []program.Section {
	return []program.Section{
		program.Flags("Server", s.registerServer),
		program.Flags("Mesh", s.registerMesh),
		program.Flags("Clients", s.registerClients),
		program.Flags("TLS and credentials of clients", s.registerCredentials),
		program.Flags("Measuring", s.registerMeasuring),
	}
}

func (s *settings) registerServer(f *pflag.FlagSet) {
	f.StringSliceVar(&s.targets, "target", []string{"127.0.0.1:15010"},
		"`address` of the server, host:port or unix:PATH; several share the clients")
	f.StringVar(&s.authority, "authority", "", "host name that streams ask for; empty: that of the target")
	f.IntSliceVar(&s.pids, "pid", nil, "process id of a server on this machine, to measure its CPU time and memory")
	f.StringSliceVar(&s.metrics, "metrics", nil, "`URL` of a server's metrics, to measure the same on another machine")
}

func (s *settings) registerMesh(f *pflag.FlagSet) {
	f.StringVar(&s.dir, "dir", "", "`directory` that populate has written")
	registerCluster(f, &s.cluster)
}

func (s *settings) registerClients(f *pflag.FlagSet) {
	f.StringVar(&s.clients, "clients", "",
		`number of sidecars, or numbers of each kind, such as sidecar=900,gateway=50,proxyless=50 (default 100 sidecars)`)
	f.IntVar(&s.Sidecars, "sidecars", 0, "number of sidecars; more than the mesh has workloads are copies")
	f.BoolVar(&s.Delta, "delta", false, "use the incremental (Delta) variant of xDS")
	f.IntVar(&s.PerConnection, "streams-per-connection", 1, "number of clients on one connection; proxies have one of their own")
	f.IntVar(&s.Dialing, "dialing", 100, "number of clients that connect at the same moment; 0: all")
	f.IntVar(&s.receive, "receive-buffer", 0, "bytes of each socket's receive buffer; 0: what the kernel chooses")
}

func (s *settings) registerCredentials(f *pflag.FlagSet) {
	f.BoolVar(&s.tls, "tls", false, "connect with TLS")
	f.StringVar(&s.secrets.CA, "ca-file", "", "`file` with the roots that verify the server; empty: the system's")
	f.StringVar(&s.secrets.ServerName, "server-name", "", "`name` in the server's certificate; empty: the target's host")
	f.BoolVar(&s.secrets.Insecure, "insecure-skip-verify", false, "do not verify the server's certificate")
	f.StringVar(&s.secrets.Cert, "cert-file", "", "`file` with the certificate of all clients")
	f.StringVar(&s.secrets.Key, "key-file", "", "`file` with its key")
	f.StringVar(&s.token, "token-file", "",
		"`file` with the token of the clients; {namespace} and {account} in the name stand for those of each client")
	s.issuer.register(f)
}

func (s *settings) registerMeasuring(f *pflag.FlagSet) {
	f.IntVar(&s.Changes, "changes", 5, "number of changes of a scenario that makes them one after the other")
	f.DurationVar(&s.Patience, "patience", time.Minute, "longest time for a change, or for connecting, to be complete")
	f.StringVar(&s.out, "out", "", "`file` for the report as JSON")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "do not print progress")
}

// registerRun defines the flags that only run has.
func (s *settings) registerRun(f *pflag.FlagSet) {
	f.StringSliceVar(&s.Scenarios, "scenario", nil, "what follows after connecting: "+strings.Join(scenario.Names(), ", "))
	f.StringVar(&s.html, "html", "", "`file` for the report as an HTML page with plots")
	f.StringVar(&s.shape, "shape", "small",
		"without --dir and --kubeconfig: `shape` of the mesh whose proxies are simulated, a name or a file")
	f.IntVar(&s.Gateways, "gateways", 0, "number of gateways")
	f.IntVar(&s.Proxyless, "proxyless", 0, "number of proxyless gRPC clients")
	f.IntVar(&s.Destinations, "destinations", 3, "number of services that each proxyless client calls")
	f.Float64Var(&s.Share, "share", 0.1, "part of the clients that misbehaves")
	f.IntVar(&s.ReadRate, "read-rate", 64<<10, "bytes that a slow client reads in a second")
	f.Float64Var(&s.Rate, "rate", 50, "endpoint changes in a second, in churn and soak")
	f.DurationVar(&s.Duration, "duration", 10*time.Second, "how long churn and idle last")
	f.StringVar(&s.Kill.Command, "kill-command", "", "shell `command` that kills the first server; empty: kill its --pid")
	f.StringVar(&s.Kill.Restart, "restart-command", "",
		"shell `command` that starts it again, and may print its new process id")
	f.DurationVar(&s.Kill.Down, "down", 0, "pause between the two")
}

// complete computes the options that several flags determine.
func (s *settings) complete(c *cobra.Command) error {
	if !s.quiet {
		s.Progress = c.ErrOrStderr()
	}
	if err := s.count(); err != nil {
		return err
	}
	for _, target := range s.targets {
		e := wire.At(target)
		if s.tls {
			var err error
			if e, err = e.Secure(s.secrets); err != nil {
				return err
			}
		}
		if s.authority != "" {
			e.Authority = s.authority
		}
		e.TokenFile, e.ReceiveBuffer = s.token, s.receive
		if err := s.issuer.give(&e, s.PerConnection); err != nil {
			return err
		}
		s.Targets = append(s.Targets, e)
	}
	var sources []measure.Source
	for _, pid := range s.pids {
		sources = append(sources, measure.Local(pid))
	}
	for _, url := range s.metrics {
		sources = append(sources, measure.Metrics(url))
	}
	if len(sources) > 0 {
		s.Server = measure.Sum(sources)
	}
	if len(s.pids) > 0 {
		s.Kill.PID = s.pids[0]
	}
	return s.locate(c)
}

// count parses --clients.
func (s *settings) count() error {
	for part := range strings.SplitSeq(s.clients, ",") {
		name, number, ok := strings.Cut(part, "=")
		if !ok {
			name, number = "sidecar", part
		}
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(number)
		of := map[string]*int{"sidecar": &s.Sidecars, "gateway": &s.Gateways, "proxyless": &s.Proxyless}[name]
		if err != nil || n < 0 || of == nil {
			return fmt.Errorf("--clients %q: want a number, or parts such as sidecar=900,gateway=50,proxyless=50",
				s.clients)
		}
		*of = n
	}
	if s.Total() == 0 {
		s.Sidecars = 100
	}
	return nil
}

// locate opens the mesh whose proxies are simulated: in a directory, in an API server, or generated from a shape.
func (s *settings) locate(c *cobra.Command) error {
	inCluster := c.Flags().Changed("kubeconfig") || c.Flags().Changed("context")
	switch {
	case inCluster && s.dir != "":
		return errors.New("the mesh is in --dir or in the API server of --kubeconfig, not in both")
	case inCluster:
		edits, err := cluster.Open(c.Context(), s.cluster)
		if err != nil {
			return err
		}
		s.Edits, s.Mesh = edits, edits.Mesh()
		return nil
	case s.dir != "":
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
