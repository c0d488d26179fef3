package bench

import (
	"fmt"
	"runtime"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotd/pilotd/bench/fleet"
	"github.com/pilotd/pilotd/bench/nullserver"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// envoyNode has as many extensions as upstream Envoy lists.
func envoyNode() *corev3.Node {
	n := &corev3.Node{Id: "sidecar~10.0.0.1~pod-%d.ns~ns.svc.cluster.local"}
	for i := range 516 {
		n.Extensions = append(n.Extensions, &corev3.Extension{Name: fmt.Sprintf("envoy.filters.http.some_filter_%d", i),
			Category: "envoy.filters.http",
			TypeUrls: []string{"envoy.extensions.filters.http.some_filter.v3.SomeFilter"}})
	}
	return n
}

// heap returns what is in use after a collection, stacks included.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// BenchmarkConnect connects all clients, who get 1,000 clusters and 1,000 endpoint assignments of 300 bytes, and
// measures what an idle one leaves in memory.
func BenchmarkConnect(b *testing.B) {
	const clients = 500
	node, err := protojson.Marshal(envoyNode())
	must(b, err)
	opening, openingBytes := map[string]*encodecache.Response{}, map[string][]byte{}
	for url, size := range map[string]int{xdstype.ClusterURL: 700, xdstype.EndpointURL: 300} {
		entries := make([]*encodecache.Entry, 1000)
		for i := range entries {
			entries[i] = encodecache.NewLeaf(url, fmt.Sprintf("outbound|80||service-%d.ns.svc.cluster.local", i),
				encodecache.NewFragment(make([]byte, size)))
		}
		opening[url] = encodecache.AssembleSotW(encodecache.Header{TypeURL: url, Version: "v", Nonce: "1"}, entries)
		openingBytes[url] = opening[url].Buffers().Materialize()
	}
	s := scene{names: 1000}
	for _, sub := range []struct {
		name      string
		newServer func() broadcaster
	}{
		{"null", func() broadcaster { return &null{Server: nullserver.New(openingBytes)} }},
		{"pilotd", func() broadcaster { return newDirect(opening, nil) }},
	} {
		b.Run(sub.name, func(b *testing.B) {
			var cpu float64
			var bytes int64
			n := 0
			for b.Loop() {
				n++
				transport, err := fleet.Unix(b.TempDir())
				must(b, err)
				server := sub.newServer()
				stop := server.serve(transport)
				base, before := heap(), cpuTime()
				f, err := fleet.Spawn(fleet.Plan{Network: "unix", Address: transport.Addr().String(), Clients: clients,
					Node:          node,
					Subscriptions: s.subscriptions()})
				must(b, err)
				must(b, f.Await(2*clients))
				cpu += float64((cpuTime() - before).Microseconds())
				bytes += int64(heap()) - int64(base)
				must(b, f.Close())
				stop()
			}
			b.ReportMetric(cpu/float64(n*clients), "cpu-µs/client")
			b.ReportMetric(float64(bytes)/float64(n*clients), "B/client")
		})
	}
}
