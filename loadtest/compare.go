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
		Short: "Be the null server: the recorded bytes, and nothing else",
		Long: `Null serves the recording of a server (compare --keep writes one), prints its address, and makes the changes that lines on its standard
input ask for, such as "endpoint 7" and "route 8". It ends with its input.`,
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
	c.Flags().StringVar(&file, "recording", "", "what to serve")
	c.Flags().BoolVar(&secure, "tls", false, "serve with TLS, and a certificate that is made for it")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to serve on")
	return c
}

func compareCommand() *cobra.Command {
	var s settings
	var keep string
	c := &cobra.Command{
		Use:   "compare",
		Short: "Run the same on a server and on the null server, and print the ratios",
		Long: `Compare records what the server sends to one sidecar, then measures connecting, endpoint changes and route changes on the server, and the
same on the null server: a bare gRPC server that sends the recorded bytes. The ratios say how far the server is from the limit.`,
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
	s.register(c.Flags())
	c.Flags().StringVar(&keep, "keep", "", "file to keep the recording in")
	return c
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
	if s.tls { // its certificate is its own; the clients' are what they were
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

// record lets the mesh's first sidecar see what the server says.
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
