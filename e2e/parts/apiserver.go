package parts

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// APIServer is a real kube-apiserver with its etcd.
type APIServer struct {
	*Process
	// Immutable after StartAPIServer.
	Kubeconfig string
	// Etcd is the address of its store.
	Etcd string
}

// StartAPIServer starts an empty API server and waits until it is ready.
func StartAPIServer(t testing.TB) *APIServer {
	t.Helper()
	cmd := exec.Command(program(t, "APISERVER"), "--dir", t.TempDir())
	// The server lives as long as this pipe is open.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	api := &APIServer{Process: startProcess(t, launch{name: "apiserver", cmd: cmd, pipe: true})}
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
