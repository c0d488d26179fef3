package parts

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// APIServer is a real kube-apiserver with its own etcd.
type APIServer struct {
	*Process
	// Immutable after StartAPIServer.
	Kubeconfig string
	// Etcd is the address of its etcd.
	Etcd string
	dir  string
}

// StartAPIServer starts an empty API server and waits until it is ready.
func StartAPIServer(t testing.TB) *APIServer {
	t.Helper()
	return startAPIServer(t)
}

// StartAuditedAPIServer starts an API server that logs all requests, for Requests.
func StartAuditedAPIServer(t testing.TB) *APIServer {
	t.Helper()
	return startAPIServer(t, "--audit")
}

func startAPIServer(t testing.TB, flags ...string) *APIServer {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(program(t, "APISERVER"), append([]string{"--dir", dir}, flags...)...)
	// The server runs until this pipe is closed.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	api := &APIServer{dir: dir, Process: startProcess(t, launch{name: "apiserver", cmd: cmd, pipe: true})}
	ready := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if url, ok := strings.CutPrefix(lines.Text(), "etcd "); ok {
				api.Etcd = url
			} else if path, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				api.Kubeconfig = path
				close(ready)
			}
		}
	}()
	select {
	case <-ready:
	case <-api.ended:
		t.Fatalf("apiserver ended: %v\n%s", api.err, api.LogTail(4000))
	case <-time.After(2 * time.Minute):
		t.Fatal("apiserver: not ready after two minutes")
	}
	return api
}

// Request is a request in the API server's audit log.
type Request struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	// Annotations contain the authorizer's decision.
	Annotations map[string]string `json:"annotations"`
	URI         string            `json:"requestURI"`
}

// Requests returns the requests so far of an audited server. A long-running request, such as a watch, is listed twice.
func (a *APIServer) Requests(t testing.TB) []Request {
	t.Helper()
	file, err := os.Open(filepath.Join(a.dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []Request
	for d := json.NewDecoder(file); ; {
		var r Request
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the last line may be incomplete
			return out
		case err != nil:
			t.Fatal(err)
		}
		out = append(out, r)
	}
}
