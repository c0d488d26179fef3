package e2e_test

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

func oddPod() pod     { return pod{"odd", "shop", "10.244.7.1", "app: odd"} }
func mountedPod() pod { return pod{"mounted", "shop", "10.244.7.2", "app: mounted"} }
func machinePod() pod { return pod{"machine", "shop", "10.244.7.4", "app: machine"} }
func grpcPod() pod    { return pod{"grpc-agent", "shop", "10.244.7.3", "app: grpc"} }

// doesNotStart has agents not start, each with a last line that says why.
func (w *agents) doesNotStart(t *testing.T) {
	n := w.network.Pod(t, oddPod().ip)
	for _, c := range []struct {
		want   string
		config map[string]any
		env    string
		taken  string
	}{
		{want: "/nowhere/envoy: no such file", config: map[string]any{"binaryPath": "/nowhere/envoy"}},
		{want: "0.0.0.0:15021", taken: ":15021"},
		{want: "the agent's port", taken: ":15020"},
		{want: "address is necessary", env: "ISTIO_BOOTSTRAP_OVERRIDE=etc/odd"},
		{want: "statsHistogramBuckets", env: "ODD_ANNOTATION=sidecar.istio.io/statsHistogramBuckets=\"x\""},
	} {
		t.Run(c.want, func(t *testing.T) {
			if c.taken != "" {
				l, err := n.Listen(c.taken)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			spec := w.spec(oddPod(), parts.Sidecar, c.env)
			spec.Config, spec.Files = c.config, map[string]string{"etc/odd": "static_resources: {listeners: [{name: odd}]}"}
			if _, annotation, ok := strings.Cut(c.env, "ODD_ANNOTATION="); ok {
				spec.Files["etc/istio/pod/annotations"] = annotation + "\n"
			}
			a := parts.StartAgent(t, n, spec)
			if err := a.Ended(); err == nil {
				t.Error("it has ended well")
			}
			lines := strings.Split(strings.TrimSpace(a.LogTail(4000)), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "pilot-agent: ") || !strings.Contains(last, c.want) {
				t.Errorf("it says %q", last)
			}
		})
	}
}

// certFile is the certificate that an agent has written, with its serial number.
func certFile(a *parts.Agent) (files map[string]string, serial string, err error) {
	files = map[string]string{}
	for _, name := range []string{"cert-chain.pem", "key.pem", "root-cert.pem"} {
		text, err := os.ReadFile(filepath.Join(a.Dir, "out", name))
		if err != nil {
			return nil, "", err
		}
		files["etc/certs/"+name] = string(text)
	}
	b, _ := pem.Decode([]byte(files["etc/certs/cert-chain.pem"]))
	if b == nil {
		return nil, "", errors.New("no certificate")
	}
	leaf, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return nil, "", err
	}
	return files, leaf.SerialNumber.Text(16), nil
}

// mounted has a pod speak mutual TLS with a certificate of files, and with the next one when the files change.
func (w *agents) mounted(t *testing.T, writers ...*parts.Agent) {
	var a *parts.Agent
	n := w.network.Pod(t, mountedPod().ip)
	if err := n.Capture(15020, 15021, 15090); err != nil {
		t.Fatal(err)
	}
	for _, writer := range writers {
		files, serial, err := certFile(writer)
		if err != nil {
			t.Fatal(err)
		}
		if a == nil {
			spec := w.spec(mountedPod(), parts.Sidecar, "OUTPUT_CERTS=out")
			spec.Files = files
			a = parts.StartAgent(t, n, spec)
			a.AwaitReady()
		} else {
			for name, text := range files {
				a.WriteFile(name, text)
			}
		}
		parts.Eventually(t, "a request is answered by the certificate of the files", func() error {
			h, err := holdingsOf(a)
			if err == nil && !slices.Contains(h.own, serial) {
				err = fmt.Errorf("Envoy has %v, want %s", h.own, serial)
			}
			if err != nil {
				return err
			}
			return asked(n.Client())
		})
	}
	if _, err := os.Stat(filepath.Join(a.Dir, "out")); err == nil {
		t.Error("it has asked for a certificate")
	}
}

// provisioned has an agent without a token show a certificate that it was given, as machines outside of clusters do: it
// gets another one for it, and configuration.
func (w *agents) provisioned(t *testing.T, writer *parts.Agent) {
	files, given, err := certFile(writer)
	if err != nil {
		t.Fatal(err)
	}
	n := w.network.Pod(t, machinePod().ip)
	if err := n.Capture(15020, 15021, 15090); err != nil {
		t.Fatal(err)
	}
	spec := w.spec(machinePod(), parts.Sidecar, "PROV_CERT=etc/given", "OUTPUT_CERTS=out")
	spec.Token, spec.Files = func() string { return "" }, map[string]string{}
	for name, text := range files {
		spec.Files[strings.Replace(name, "etc/certs/", "etc/given/", 1)] = text
	}
	a := parts.StartAgent(t, n, spec)
	a.AwaitReady()
	if _, got, err := certFile(a); err != nil || got == given {
		t.Errorf("it has certificate %s, and was given %s: %v", got, given, err)
	}
	if err := asked(n.Client()); err != nil {
		t.Error(err)
	}
	a.Terminate()
	if err := a.Ended(); err != nil {
		t.Error(err)
	}
}

// withoutEnvoy has a gRPC client speak xDS to an agent that starts no Envoy.
func (w *agents) withoutEnvoy(t *testing.T) {
	n := w.network.Pod(t, grpcPod().ip)
	a := parts.StartAgent(t, n, w.spec(grpcPod(), parts.Sidecar, "DISABLE_ENVOY=true", "ISTIO_META_GENERATOR=grpc",
		"OUTPUT_CERTS=out"))
	parts.Eventually(t, "the agent is ready, with a certificate in files", func() error {
		if _, _, err := certFile(a); err != nil {
			return err
		}
		_, err := a.Page(15020, "/healthz/ready")
		return err
	})
	client := parts.StartGRPCClientOf(t, n, filepath.Join(a.Dir, "etc/istio/proxy/grpc-bootstrap.json"),
		"xds:///"+webHost+":7070")
	eventuallyCalls(t, client, 3, webV1().name)
	a.Terminate()
	if err := a.Ended(); err != nil {
		t.Error(err)
	}
}

// onZero ends a pod that waits for its last connection: it lasts as long as that.
func (w *agents) onZero(t *testing.T, in *testnet.Pod, a *parts.Agent) {
	c, err := in.DialContext(t.Context(), "tcp", net.JoinHostPort(webVIP, "80"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	ask := func() error {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", webHost); err != nil {
			return err
		}
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if name := r.Header.Get("x-echo-name"); name != webV1().name {
			return fmt.Errorf("answer %d %q", r.StatusCode, name)
		}
		_, err = io.Copy(io.Discard, r.Body)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	a.Terminate()
	parts.Eventually(t, "its connections are counted again and again", func() error {
		if err := ask(); err != nil {
			t.Fatal("a connection is not kept:", err)
		}
		if n := strings.Count(a.LogTail(1<<20), "connections are open"); n < 2 {
			return fmt.Errorf("%d times", n)
		}
		return a.Alive()
	})
	c.Close()
	if err := a.Ended(); err != nil {
		t.Error(err)
	}
}
