package parts

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// Echo is an HTTP backend in a pod. It answers with its name and the request that it received.
type Echo struct {
	// Immutable after StartEcho.
	Name string
}

// StartEcho serves HTTP on that address of the pod (":8080").
func StartEcho(t testing.TB, pod *testnet.Pod, addr, name string) *Echo {
	t.Helper()
	e := &Echo{Name: name}
	l, err := pod.Listen(addr)
	if err != nil {
		t.Fatalf("echo %s: %v", name, err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: e, ErrorLog: log.New(io.Discard, "", 0), Protocols: &protocols}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return e
}

// ServeHTTP answers in headers, so that a HEAD request gets the same as a GET.
func (e *Echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-echo-name", e.Name)
	w.Header().Set("x-echo-host", r.Host)
	w.Header().Set("x-echo-path", r.URL.RequestURI())
	if from, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		w.Header().Set("x-echo-from", from)
	}
	for name, values := range r.Header {
		w.Header().Set("x-echo-header-"+name, values[0])
	}
	_, _ = fmt.Fprintln(w, e.Name)
}

// StartTCPEcho serves a protocol in which the server speaks first and then repeats what it receives.
func StartTCPEcho(t testing.TB, pod *testnet.Pod, addr, name string) {
	t.Helper()
	l, err := pod.Listen(addr)
	if err != nil {
		t.Fatalf("echo %s: %v", name, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go repeat(c, name)
		}
	}()
}

func repeat(c net.Conn, name string) {
	defer c.Close()
	_, _ = fmt.Fprintln(c, name)
	_, _ = io.Copy(c, c)
}

// Answer is the answer of an echo.
type Answer struct {
	Status int
	// Name is empty if an Envoy answered instead of a backend.
	Name   string
	Header http.Header
	Body   string
}

// Ask sends a GET request for url, with a Host header, through that client.
func Ask(client *http.Client, url, host string, headers ...string) (Answer, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return Answer{}, err
	}
	req.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return Send(client, req)
}

// Send sends any request through that client.
func Send(client *http.Client, req *http.Request) (Answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: resp.StatusCode, Name: resp.Header.Get("x-echo-name"), Header: resp.Header,
		Body: string(body)}, nil
}

// Names sends n requests and counts the answers by name, or by status if they were refused.
func Names(n int, ask func() (Answer, error)) (map[string]int, error) {
	counts := make(map[string]int)
	for range n {
		a, err := ask()
		switch {
		case err != nil:
			return counts, err
		case a.Name == "":
			counts[fmt.Sprint(a.Status)]++
		default:
			counts[a.Name]++
		}
	}
	return counts, nil
}
