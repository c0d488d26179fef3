package bench

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/inject/admission"
	"github.com/pilotd/pilotd/inject/injecttest"
)

const (
	// podsPerSecond are created, whether those before are answered or not; apiServers ask, each over one connection.
	podsPerSecond, apiServers = 1000, 3
	// deployments is how many workloads make pods at once.
	deployments = 50
	// newPod is a usual one, as an API server asks about it: two containers, probes, resources, annotations, the volume of
	// its service account. Its verbs are numbers of the workload, of the pod, and of the account's volume.
	newPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"web-%[1]d-7d4b9c6f5-","namespace":"shop",
"creationTimestamp":null,"labels":{"app":"web-%[1]d","version":"v1","pod":"%[2]d","pod-template-hash":"7d4b9c6f5"},
"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"9090"},"ownerReferences":[{"apiVersion":"apps/v1",
"kind":"ReplicaSet","name":"web-%[1]d-7d4b9c6f5","uid":"d3b07384-0000-4000-8000-000000000001","controller":true,
"blockOwnerDeletion":true}],"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",
"time":"2026-11-22T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},
"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:version":{}}},
"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}},"f:dnsPolicy":{}}}}]},"spec":{
"volumes":[{"name":"kube-api-access-%05[3]x","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,
"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{
"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],
"containers":[{"name":"app","image":"registry.example/web:1","ports":[{"name":"http","containerPort":8080,
"protocol":"TCP"}],"env":[{"name":"A","value":"1"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},
"volumeMounts":[{"name":"kube-api-access-%05[3]x","readOnly":true,"mountPath":
"/var/run/secrets/kubernetes.io/serviceaccount"}],"livenessProbe":{"httpGet":{"path":"/live","port":8080,"scheme":"HTTP"},
"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"readinessProbe":{"httpGet":{
"path":"/ready","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,
"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
"imagePullPolicy":"IfNotPresent"},{"name":"log","image":"registry.example/log:1","resources":{},"volumeMounts":[{"name":
"kube-api-access-%05[3]x","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
"imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",
"serviceAccountName":"web","serviceAccount":"web","securityContext":{},"schedulerName":"default-scheduler","tolerations":[
{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":
"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,
"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{}}`
	newReview = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"%08d","kind":{"group":"",
"version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"shop","operation":
"CREATE","userInfo":{"username":"system:serviceaccount:kube-system:replicaset-controller","groups":["system:serviceaccounts",
"system:authenticated"]},"object":%s,"oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions","apiVersion":
"meta.k8s.io/v1"}}}`
)

// asking is one way to ask a webhook.
type asking struct {
	name, path string
	request    func(n int) []byte
	patched    bool // the answer has a patch
}

// askings are what is measured in turn: a webhook that lets everything in and does nothing, the pods of some
// Deployments, and pods of which no two are alike.
func askings() []asking {
	replica := func(n int) []byte { return podReview(n, n%deployments, 0) }
	return []asking{{"null", "/null", replica, false}, {"replicas", "/inject", replica, true},
		{"different", "/inject", func(n int) []byte { return podReview(n, n, n) }, true}}
}

// podReview is an API server's question: without white space.
func podReview(n, workload, pod int) []byte {
	review := fmt.Appendf(nil, newReview, n, fmt.Sprintf(newPod, workload, pod, n&0xfffff))
	return bytes.ReplaceAll(review, []byte("\n"), nil)
}

// webhook is the injector's, over TLS, with those that ask it.
type webhook struct {
	server *httptest.Server
	askers []*http.Client
	asked  int
}

func newWebhook(b *testing.B) *webhook {
	values, mesh := injecttest.Settings(b)
	in, err := inject.New(inject.Settings{Values: values, Mesh: mesh,
		DefaultProxy: ingest.DefaultMesh().GetDefaultConfig()})
	must(b, err)
	mux := http.NewServeMux()
	mux.Handle("/inject", admission.New(admission.Options{Injector: func() *inject.Injector { return in },
		Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}))
	mux.HandleFunc("/null", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"allowed":true}}`)
	})
	w := &webhook{server: httptest.NewUnstartedServer(mux)}
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
func (w *webhook) ask(b *testing.B, a asking, n int) {
	resp, err := w.askers[n%apiServers].Post(w.server.URL+a.path, "application/json", bytes.NewReader(a.request(n)))
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(answer, []byte(`"allowed":true`)) ||
		bytes.Contains(answer, []byte(`"patch":`)) != a.patched {
		b.Errorf("%s: a pod is answered with %q, %v", a.name, answer, err)
	}
}

// second has a second's pods injected, each at its own moment, and adds how long each took from that moment on.
func (w *webhook) second(b *testing.B, a asking, into *measured) {
	var all sync.WaitGroup
	took := make([]time.Duration, podsPerSecond)
	before, begin := cpuTime(), time.Now()
	for i := range took {
		due := begin.Add(time.Duration(i) * time.Second / podsPerSecond)
		time.Sleep(time.Until(due)) // The load comes whether the answers do or not, as pods do.
		n := w.asked
		w.asked++
		all.Go(func() {
			w.ask(b, a, n)
			took[i] = time.Since(due)
		})
	}
	all.Wait()
	into.cpu += cpuTime() - before
	into.took = append(into.took, took...)
}

// measured is what pods took.
type measured struct {
	took []time.Duration
	cpu  time.Duration
}

func (m *measured) report(b *testing.B, name string) {
	slices.Sort(m.took)
	b.ReportMetric(float64(m.cpu.Microseconds())/1000/float64(len(m.took)), name+"-cpu-ms/pod")
	for part, of := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		at := m.took[min(int(of*float64(len(m.took))), len(m.took)-1)]
		b.ReportMetric(float64(at.Microseconds())/1000, name+"-"+part+"-ms")
	}
}

// BenchmarkInjection has pods injected by the webhook over TLS, as they come: alone, and beside a storm of pushes. The
// storm edits one VirtualService after the other, each as soon as all sidecars have acknowledged the one before. One op
// is a second's pods of each sort, in turn. The sidecars are another process, those that ask are not: cpu-ms/pod is of
// both sides, and beside pushes of these too.
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
		stop, edited := make(chan struct{}), make(chan int)
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					edited <- n
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
		b.ReportMetric(float64(<-edited)/time.Since(begin).Seconds(), "edits/s")
	})
}

// injection measures seconds of all sorts of pods, in turn.
func injection(b *testing.B, w *webhook) {
	all := askings()
	w.second(b, all[1], &measured{}) // connects, and meets the workloads for the first time
	results := make([]measured, len(all))
	for b.Loop() {
		for i, a := range all {
			w.second(b, a, &results[i])
		}
	}
	for i := range results {
		results[i].report(b, all[i].name)
	}
}
