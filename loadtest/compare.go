package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/null"
	"github.com/pilotd/pilotd/loadtest/scenario"
	"github.com/pilotd/pilotd/loadtest/wire"
)

func nullCommand() *cobra.Command {
	var file, listen string
	var secure bool
	c := &cobra.Command{
		Use:   "null",
		Short: "Serve a recording, as the null server of compare",
		Long: `Serve the recorded responses of a server (compare --keep writes a recording) and print the address. Each line on standard
input makes a change, such as "endpoint 7" or "route 8". The end of standard input ends the server.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			r := new(null.Recording)
			if err := json.Unmarshal(text, r); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), l.Addr())
			return serveNull(l, r, c.InOrStdin(), secure)
		},
	}
	c.Flags().StringVar(&file, "recording", "", "`file` with the recording")
	c.Flags().BoolVar(&secure, "tls", false, "serve with TLS, with a certificate made for this run")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to serve on")
	return c
}

func compareCommand() *cobra.Command {
	var s settings
	var keep string
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure a server and the null server, and print the ratios",
		Long: `Record what the server sends to one sidecar; then measure connecting, endpoint changes and route changes, first with the
server and then with the null server, a bare gRPC server that sends the recorded bytes. The ratios of the results say
how far the server is from what gRPC allows.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(c); err != nil {
				return err
			}
			if s.Edits == nil {
				return errors.New("compare needs a mesh that it can edit: --dir or --kubeconfig")
			}
			s.Scenarios = []string{"endpoint", "route"}
			target, limit, err := compare(c.Context(), &s, keep)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			return errors.Join(target.Write(w), limit.Write(w), scenario.WriteRatios(w, target, limit),
				save(map[string]*scenario.Report{"target": target, "null": limit}, s.out))
		},
	}
	recording := program.Flags("Recording", func(f *pflag.FlagSet) {
		f.StringVar(&keep, "keep", "", "`file` to store the recording in")
	})
	return program.Explain(c, append(s.sections(), recording)...)
}

// compare measures the server and the null server, one after the other.
func compare(ctx context.Context, s *settings, keep string) (target, limit *scenario.Report, err error) {
	if keep == "" {
		dir, err := os.MkdirTemp("", "loadtest")
		if err != nil {
			return nil, nil, err
		}
		defer os.RemoveAll(dir)
		keep = filepath.Join(dir, "recording.json")
	}
	recording, err := record(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if target, err = scenario.Run(ctx, s.Options); err != nil {
		return nil, nil, err
	}
	args := []string{"null", "--recording", keep}
	if s.tls {
		args = append(args, "--tls")
	}
	p, err := null.Spawn(recording, keep, args...)
	if err != nil {
		return nil, nil, err
	}
	o := s.Options
	o.Server, o.Edits = measure.Local(p.PID()), p
	o.Targets = []wire.Endpoint{wire.At(p.Address)}
	if s.tls { // the null server has a certificate of its own; clients keep theirs
		own := s.secrets
		own.CA, own.Insecure = "", true
		if o.Targets[0], err = o.Targets[0].Secure(own); err != nil {
			return nil, nil, errors.Join(err, p.Close())
		}
		o.Targets[0].Issuer = s.Targets[0].Issuer
	}
	limit, err = scenario.Run(ctx, o)
	return target, limit, errors.Join(err, p.Close())
}

// record connects the mesh's first sidecar and records what the server sends it.
func record(ctx context.Context, s *settings) (*null.Recording, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	if err := s.Edits.Restore(); err != nil {
		return nil, err
	}
	one := scenario.Clients{Sidecars: 1, Delta: s.Delta}
	return null.Record(ctx, one.Fleet(s.Mesh, s.Targets), s.Edits)
}

// serveNull serves the recording, in plain text or with TLS.
func serveNull(l net.Listener, r *null.Recording, in io.Reader, secure bool) error {
	if !secure {
		return null.Serve(l, r, in)
	}
	credentials, err := null.Credentials()
	if err != nil {
		return err
	}
	return null.Serve(l, r, in, credentials)
}
