package bench

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/inject/admission"
	"github.com/pilotd/pilotd/inject/injecttest"
)

const (
	// podsPerSecond are created, whether those before are answered or not; apiServers ask, each over one connection.
	podsPerSecond, apiServers = 1000, 3
	// newPod is a usual one: two containers, probes, resources, annotations.
	newPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-7d4-","namespace":"shop","labels":{"app":"web",
"version":"v1"},"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"9090"},"ownerReferences":[{"apiVersion":
"apps/v1","kind":"ReplicaSet","name":"web-7d4","uid":"1","controller":true}]},"spec":{"serviceAccountName":"web",
"containers":[{"name":"app","image":"registry.example/web:1","ports":[{"name":"http","containerPort":8080}],"resources":
{"requests":{"cpu":"100m","memory":"128Mi"}},"readinessProbe":{"httpGet":{"path":"/ready","port":"http"}},"livenessProbe":
{"httpGet":{"path":"/live","port":8080}},"env":[{"name":"A","value":"1"}]},{"name":"log","image":"registry.example/log:1"}]}}`
)

// webhook is the injector's, over TLS, with those that ask it.
type webhook struct {
	server  *httptest.Server
	askers  []*http.Client
	request []byte
}

func newWebhook(b *testing.B) *webhook {
	values, mesh := injecttest.Settings(b)
	in, err := inject.New(inject.Settings{Values: values, Mesh: mesh,
		DefaultProxy: ingest.DefaultMesh().GetDefaultConfig()})
	must(b, err)
	h := admission.New(admission.Options{Injector: func() *inject.Injector { return in }, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	w := &webhook{server: httptest.NewUnstartedServer(h), request: fmt.Appendf(nil,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","namespace":"shop","operation":
"CREATE","resource":{"group":"","version":"v1","resource":"pods"},"object":%s}}`, newPod)}
	w.server.EnableHTTP2 = true
	w.server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(w.server.Certificate())
	for range apiServers {
		w.askers = append(w.askers, &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}})
	}
	return w
}

func (w *webhook) close() {
	for _, c := range w.askers {
		c.CloseIdleConnections()
	}
	w.server.Close()
}

// ask has one pod injected.
func (w *webhook) ask(b *testing.B, n int) {
	resp, err := w.askers[n%apiServers].Post(w.server.URL+"/inject", "application/json", bytes.NewReader(w.request))
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(resp.Body).Decode(&review); err != nil || len(review.Response.Patch) == 0 {
		b.Error("a pod is not injected: ", err)
	}
}

// second has a second's pods injected, each at its own moment, and returns how long each took from that moment on.
func (w *webhook) second(b *testing.B) []time.Duration {
	var all sync.WaitGroup
	took := make([]time.Duration, podsPerSecond)
	begin := time.Now()
	for i := range took {
		due := begin.Add(time.Duration(i) * time.Second / podsPerSecond)
		time.Sleep(time.Until(due)) // The load comes whether the answers do or not, as pods do.
		all.Go(func() {
			w.ask(b, i)
			took[i] = time.Since(due)
		})
	}
	all.Wait()
	return took
}

// BenchmarkInjection has pods injected by the webhook over TLS, as they come: alone, and beside sidecars to whom
// changes are pushed, one when the one before is everywhere. One op is a second's pods. The sidecars are another
// process, those that ask are not: cpu-ms/pod is of both sides, and beside pushes of these too.
func BenchmarkInjection(b *testing.B) {
	w := newWebhook(b)
	defer w.close()
	b.Run("alone", func(b *testing.B) { injection(b, w) })
	b.Run("beside pushes", func(b *testing.B) {
		m, clients := scale()
		if testing.Short() {
			clients = 100
		}
		rec := record(b, newWhole(m), true)
		pilotd := newWhole(m)
		defer pilotd.stop()
		pilotd.changes = pilotd.route
		c := gather(b, pilotd, fleet.Plan{Clients: clients, Delta: true, Nodes: nodesOf(b, m, 0, clients),
			Subscriptions: rec.subscriptions})
		defer c.leave(b)
		stop, pushed := make(chan struct{}), make(chan int)
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					pushed <- n
					return
				default:
					c.push(b, n)
					c.settle(b)
				}
			}
		}()
		begin := time.Now()
		injection(b, w)
		close(stop)
		b.ReportMetric(float64(<-pushed*clients)/time.Since(begin).Seconds(), "pushes/s")
	})
}

// injection measures seconds.
func injection(b *testing.B, w *webhook) {
	w.second(b) // connects
	var took []time.Duration
	before := cpuTime()
	for b.Loop() {
		took = append(took, w.second(b)...)
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(len(took)), "cpu-ms/pod")
	slices.Sort(took)
	for name, part := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "max-ms": 1} {
		b.ReportMetric(float64(took[min(int(part*float64(len(took))), len(took)-1)].Microseconds())/1000, name)
	}
}
