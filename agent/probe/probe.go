// Package probe checks the health of the application as the kubelet would: by HTTP, TCP, gRPC or a command.
package probe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// Header is a header of an HTTP request.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// HTTP is a GET request. Any status from 200 to 399 is healthy.
type HTTP struct {
	Path    string   `json:"path"`
	Port    Port     `json:"port"`
	Host    string   `json:"host"`
	Scheme  string   `json:"scheme"`
	Headers []Header `json:"httpHeaders"`
}

// TCP is a connection that must succeed.
type TCP struct {
	Port Port   `json:"port"`
	Host string `json:"host"`
}

// GRPC is a call of the gRPC health service.
type GRPC struct {
	Port    Port   `json:"port"`
	Service string `json:"service"`
}

// Exec is a command that must exit with code 0.
type Exec struct {
	Command []string `json:"command"`
}

// Port is a port in JSON: a number, or a string with a number.
type Port uint16

// UnmarshalJSON parses a port from 1 to 65535.
func (p *Port) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("port %s: want a number from 1 to 65535", data)
	}
	*p = Port(n)
	return nil
}

// Probe is one health check. Exactly one of its actions is set.
type Probe struct {
	HTTP           *HTTP `json:"httpGet,omitempty"`
	TCP            *TCP  `json:"tcpSocket,omitempty"`
	GRPC           *GRPC `json:"grpc,omitempty"`
	Exec           *Exec `json:"exec,omitempty"`
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// Check returns an error for a probe with no action or with several.
func (p *Probe) Check() error {
	n := 0
	for _, is := range []bool{p.HTTP != nil, p.TCP != nil, p.GRPC != nil, p.Exec != nil && len(p.Exec.Command) > 0} {
		if is {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("want one of httpGet, tcpSocket, grpc and exec, got %d", n)
	}
	return nil
}

// ReadAll parses probes as injection writes them: a JSON object from the path that the kubelet requests to the probe.
func ReadAll(text string) (map[string]*Probe, error) {
	out := map[string]*Probe{}
	if text == "" {
		return out, nil
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, err
	}
	for path, p := range out {
		if p == nil {
			return nil, fmt.Errorf("%s: want a probe", path)
		}
		if err := p.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return out, nil
}

// ErrUnwell reports that the application answered that it is not healthy.
var ErrUnwell = errors.New("the application is not well")

// Asker runs probes against the application in the pod.
type Asker struct {
	// Host is the address of the application, unless the probe names a host.
	Host netip.Addr
	// From is the source address of probes; the zero value means any. The capture rules let connections from one
	// address pass to the application, and redirect others to the proxy.
	From netip.Addr
}

// Answer is the application's answer to a probe.
type Answer struct {
	// Status is an HTTP status. For probes other than HTTP it is 200 if the application is healthy.
	Status int
	Body   []byte
}

// maxBody is how many bytes of an answer's body are kept.
const maxBody = 10 << 10

// Ask runs a probe once. It ends when ctx ends, or after the timeout of the probe if that is positive.
func (a Asker) Ask(ctx context.Context, p *Probe, header http.Header) (Answer, error) {
	timeout := time.Second
	if p.TimeoutSeconds > 0 {
		timeout = time.Duration(p.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case p.HTTP != nil:
		return a.http(ctx, p.HTTP, header)
	case p.TCP != nil:
		return well(a.tcp(ctx, p.TCP))
	case p.GRPC != nil:
		return well(a.grpc(ctx, p.GRPC))
	default:
		return well(exec.CommandContext(ctx, p.Exec.Command[0], p.Exec.Command[1:]...).Run()) // #nosec G204 -- the pod's own
	}
}

// well returns the answer of a probe that has no HTTP status.
func well(err error) (Answer, error) {
	if err != nil {
		return Answer{Status: http.StatusInternalServerError}, err
	}
	return Answer{Status: http.StatusOK}, nil
}

func (a Asker) dialer() *net.Dialer {
	d := &net.Dialer{}
	if a.From.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.From, 0))
	}
	return d
}

func (a Asker) address(host string, port Port) string {
	if host == "" {
		host = a.Host.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func (a Asker) tcp(ctx context.Context, t *TCP) error {
	c, err := a.dialer().DialContext(ctx, "tcp", a.address(t.Host, t.Port))
	if err != nil {
		return err
	}
	return c.Close()
}

func (a Asker) http(ctx context.Context, h *HTTP, header http.Header) (Answer, error) {
	scheme := "http"
	if strings.EqualFold(h.Scheme, "https") {
		scheme = "https"
	}
	path := h.Path
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+a.address(h.Host, h.Port)+path, nil)
	if err != nil {
		return Answer{}, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	for _, one := range h.Headers {
		if strings.EqualFold(one.Name, "Host") {
			r.Host = one.Value
		}
		r.Header.Set(one.Name, one.Value)
	}
	client := &http.Client{
		Transport: &http.Transport{DialContext: a.dialer().DialContext, DisableKeepAlives: true,
			// The kubelet does not verify the application's certificate either.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // #nosec G402 -- as the kubelet
		// A redirect to another host is returned as the answer; one on the same host is followed.
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Hostname() != via[0].URL.Hostname() || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	answer, err := client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer answer.Body.Close()
	out := Answer{Status: answer.StatusCode}
	if out.Body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody)); err != nil {
		return out, err
	}
	if out.Status < 200 || out.Status >= 400 {
		err = fmt.Errorf("%w: status %d", ErrUnwell, out.Status)
	}
	return out, err
}

func (a Asker) grpc(ctx context.Context, g *GRPC) error {
	conn, err := grpc.NewClient("passthrough:///"+a.address("", g.Port),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return a.dialer().DialContext(ctx, "tcp", to)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: g.Service})
	if err != nil {
		return err
	}
	if s := answer.GetStatus(); s != healthv1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%w: %v", ErrUnwell, s)
	}
	return nil
}
