package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

func (s *settings) register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.targets, "target", []string{"127.0.0.1:15010"},
		"host:port of a server, or unix:PATH; of several, each gets its part of the clients")
	f.StringVar(&s.clients, "clients", "",
		`how many clients: a number of sidecars, or parts such as "sidecar=900,gateway=50,proxyless=50"`)
	f.IntVar(&s.Sidecars, "sidecars", 0, "how many sidecars; beyond the mesh's workloads they repeat")
	f.IntVar(&s.PerConnection, "streams-per-connection", 1, "how many clients share a connection; 1 is what proxies do")
	f.BoolVar(&s.Delta, "delta", false, "speak the incremental protocol")
	f.IntVar(&s.Dialing, "dialing", 100, "how many connect at the same moment; 0 is all")
	f.BoolVar(&s.tls, "tls", false, "connect with TLS")
	f.StringVar(&s.secrets.CA, "ca-file", "", "certificates that are trusted; the system's by default")
	f.StringVar(&s.secrets.Cert, "cert-file", "", "certificate of the clients")
	f.StringVar(&s.secrets.Key, "key-file", "", "its key")
	f.StringVar(&s.secrets.ServerName, "server-name", "",
		"whom the server's certificate is for; the target's host by default")
	f.BoolVar(&s.secrets.Insecure, "insecure-skip-verify", false, "take any certificate of the server")
	f.StringVar(&s.authority, "authority", "", "whom streams say that they want; the target by default")
	f.StringVar(&s.token, "token-file", "", "file of the token that the clients show; {namespace} and {account} in its name are those of each client")
	s.issuer.register(f)
	f.StringVar(&s.dir, "dir", "", "directory that populate wrote")
	registerCluster(f, &s.cluster)
	f.IntSliceVar(&s.pids, "pid", nil, "process of a server, to measure its CPU time and memory")
	f.StringSliceVar(&s.metrics, "metrics", nil,
		"URL of a server's metrics, to measure the same where it is no process of this machine")
	f.IntVar(&s.receive, "receive-buffer", 0,
		"bytes that the system keeps of a connection until they are read; 0 is its own choice")
	f.IntVar(&s.Changes, "changes", 5, "how many changes scenarios make that make one after the other")
	f.DurationVar(&s.Patience, "patience", time.Minute, "how long a change, or connecting, may take to be complete")
	f.StringVar(&s.out, "out", "", "file for the report as JSON")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "no progress")
}

// registerRun registers the flags of run alone.
func (s *settings) registerRun(f *pflag.FlagSet) {
	f.IntVar(&s.Gateways, "gateways", 0, "how many gateways")
	f.IntVar(&s.Proxyless, "proxyless", 0, "how many proxyless gRPC clients")
	f.IntVar(&s.Destinations, "destinations", 3, "how many services each proxyless client calls")
	f.StringVar(&s.html, "html", "", "file for the report as a page with plots")
	f.StringVar(&s.shape, "shape", "small",
		"whose proxies these are, without --dir and --kubeconfig: the name of a shape, or a file of yours")
	f.Float64Var(&s.Share, "share", 0.1, "part of the clients that misbehaves")
	f.IntVar(&s.ReadRate, "read-rate", 64<<10, "bytes a second that slow clients read")
	f.Float64Var(&s.Rate, "rate", 50, "endpoint changes a second of churn and soak")
	f.DurationVar(&s.Duration, "duration", 10*time.Second, "how long churn and idle last")
	f.StringVar(&s.Kill.Command, "kill-command", "",
		"shell command that kills the first server; by default its --pid is killed")
	f.StringVar(&s.Kill.Restart, "restart-command", "",
		"shell command that starts it again, and may print its new process")
	f.DurationVar(&s.Kill.Down, "down", 0, "how long it stays away before")
}

// complete makes options of the flags.
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

// count says how many clients of each kind there are.
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

// locate finds the mesh whose proxies are simulated: in a directory, in an API server, or generated.
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
