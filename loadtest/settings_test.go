package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/loadtest/scenario"
)

// complete makes options of flags, as run does.
func complete(t *testing.T, args ...string) (*settings, error) {
	t.Helper()
	var s settings
	c := &cobra.Command{Use: "run", RunE: func(c *cobra.Command, _ []string) error { return s.complete(c) },
		SilenceErrors: true, SilenceUsage: true}
	program.Explain(c, append(s.sections(), program.Flags("What to run", s.registerRun))...)
	c.SetArgs(args)
	c.SetErr(io.Discard)
	return &s, c.Execute()
}

func TestHowManyClients(t *testing.T) {
	for args, want := range map[string]scenario.Clients{
		"":             {Sidecars: 100},
		"--clients 7":  {Sidecars: 7},
		"--gateways 3": {Gateways: 3},
		"--sidecars 9 --clients gateway=2,proxyless=4":           {Sidecars: 9, Gateways: 2, Proxyless: 4},
		"--clients sidecar=1 --streams-per-connection 5 --delta": {Sidecars: 1, PerConnection: 5, Delta: true},
	} {
		s, err := complete(t, strings.Fields(args)...)
		if err != nil {
			t.Error(args, err)
			continue
		}
		got := s.Clients
		want.PerConnection, want.Destinations = max(1, want.PerConnection), 3
		if got != want {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
}

func TestWhereServersAre(t *testing.T) {
	s, err := complete(t, "--target", "a:1,unix:/run/b", "--tls", "--insecure-skip-verify", "--authority", "istiod",
		"--token-file", "t", "--pid", "5", "--receive-buffer", "9")
	if err != nil || len(s.Targets) != 2 || s.Server == nil || s.Kill.PID != 5 {
		t.Fatalf("%+v %v", s, err)
	}
	a, b := s.Targets[0], s.Targets[1]
	if a.Network != "tcp" || a.Address != "a:1" || b.Network != "unix" || b.Address != "/run/b" ||
		a.TLS.ServerName != "a" || b.Authority != "istiod" || a.TokenFile != "t" || b.ReceiveBuffer != 9 {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestWrongFlagsAreSaid(t *testing.T) {
	for args, want := range map[string]string{
		"--clients many":                   "want a number",
		"--clients ztunnel=1":              "want a number",
		"--tls --cert-file x":              "needs its key",
		"--tls --ca-file nowhere":          "nowhere",
		"--dir nowhere":                    "nowhere",
		"--issuer-cert-file nowhere":       "need --tls",
		"--tls --issuer-cert-file nowhere": "nowhere",
		"--tls --csr":                      "with a token",
		"--tls --csr --issuer-key-file x":  "one of them",
		"--tls --csr --token-file x --streams-per-connection 2": "of their own",
		"--shape nothing-like-that":                             "nothing-like-that",
	} {
		if _, err := complete(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestReportsAreSaved(t *testing.T) {
	dir := t.TempDir()
	r := &scenario.Report{Schema: scenario.Schema}
	for file, want := range map[string]string{"r.json": scenario.Schema, "r.html": "</html>"} {
		name := filepath.Join(dir, file)
		write := func() error { return save(r, name) }
		if strings.HasSuffix(file, "html") {
			write = func() error { return savePage(r, name) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if err := save(r, ""); err != nil {
		t.Error(err)
	}
	if err := savePage(r, filepath.Join(dir, "no", "where")); err == nil {
		t.Error("saved where nothing is")
	}
}
