package startup

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pilotd/pilotd/e2e/parts"
)

// bareRead reads all streams that pilotd reads at its start, at the same time, and throws
// them away. It returns how long that takes and how many bytes it is.
func bareRead(t testing.TB, kubeconfig string) (time.Duration, int64) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	sizes := make(chan int64, 10)
	began := time.Now()
	for path, accept := range map[string]string{
		"/api/v1/namespaces": protobuf, "/api/v1/nodes": protobuf, "/api/v1/pods": protobuf,
		"/api/v1/services":                              protobuf,
		"/apis/discovery.k8s.io/v1/endpointslices":      protobuf,
		"/apis/networking.istio.io/v1/virtualservices":  "application/json",
		"/apis/networking.istio.io/v1/destinationrules": "application/json",
	} {
		group.Go(func() error {
			req, err := http.NewRequest(http.MethodGet,
				cfg.Host+path+
					"?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan", nil)
			if err != nil {
				return err
			}
			req.Header.Set("Accept", accept)
			n, err := throwAway(client, req)
			sizes <- n
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	took, all := time.Since(began), int64(0)
	close(sizes)
	for n := range sizes {
		all += n
	}
	return took, all
}

const protobuf = "application/vnd.kubernetes.protobuf;stream=watch"

// throwAway reads a watch up to the mark that ends the objects that are there.
func throwAway(client *http.Client, req *http.Request) (int64, error) {
	var resp *http.Response
	var err error
	busy := parts.Poll(patience, 100*time.Millisecond, func() error {
		// Its own cache fills.
		if resp, err = client.Do(req); err == nil && resp.StatusCode == http.StatusTooManyRequests {
			resp.Body.Close()
			return errors.New(req.URL.Path + ": " + resp.Status)
		}
		return nil
	})
	if err = cmp.Or(err, busy); err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, errors.New(req.URL.Path + ": " + resp.Status)
	}
	mark := []byte("k8s.io/initial-events-end")
	buf, kept, all := make([]byte, 1<<16), 0, int64(0)
	for {
		n, err := resp.Body.Read(buf[kept:])
		all += int64(n)
		if bytes.Contains(buf[:kept+n], mark) {
			return all, nil
		}
		if errors.Is(err, io.EOF) {
			return all, errors.New(req.URL.Path + ": ended before all objects came")
		}
		if err != nil {
			return all, err
		}
		kept = copy(buf, buf[max(0, kept+n-len(mark)):kept+n])
	}
}
