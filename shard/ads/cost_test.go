package ads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/xdstype"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
)

// BenchmarkFirstNACKOfManyVersions is the first refusal of a Delta client that came back with 10,000 versions.
func BenchmarkFirstNACKOfManyVersions(b *testing.B) {
	const n = 10_000
	m, table := newMesh(), NewNamesTable()
	var nonce uint64
	var words []string
	fingerprints := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i)
		words = append(words, name+"=1")
		fingerprints[name] = "older"
	}
	desired := m.desired(map[xdstype.Type]Section{xdstype.Cluster: m.section(xdstype.Cluster, words)})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { nonce++; return nonce })
		s, now := New(differ, Options{Delta: true}), time.Unix(1000, 0)
		s.SetDesired(now, differ, desired)
		sent := s.Receive(now, differ, &Request{Delta: true, TypeURL: xdstype.ClusterURL,
			Initial: table.VersionsOf(fingerprints)})[0].Batch
		nack := &Request{Delta: true, TypeURL: xdstype.ClusterURL, Nonce: sent.Nonce,
			Error: &statuspb.Status{Message: "it does not decode"}}
		b.StartTimer()
		s.Receive(now, differ, nack)
	}
}

// BenchmarkRefuseThousandClusters is a client that refuses 1,000 new clusters one after the other, until all are held
// back.
func BenchmarkRefuseThousandClusters(b *testing.B) {
	for _, named := range []bool{true, false} {
		b.Run(fmt.Sprintf("named=%v", named), func(b *testing.B) { benchRefuse(b, named) })
	}
}

func benchRefuse(b *testing.B, named bool) {
	m, table := newMesh(), NewNamesTable()
	var nonce uint64
	var words []string
	for i := range 1000 {
		name := fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i)
		words = append(words, name+"=1")
	}
	desired := m.desired(map[xdstype.Type]Section{xdstype.Cluster: m.section(xdstype.Cluster, words)})
	b.ReportAllocs()
	nacks := 0
	for b.Loop() {
		differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { nonce++; return nonce })
		s, now := New(differ, Options{Delta: true}), time.Unix(1000, 0)
		s.SetDesired(now, differ, desired)
		out := s.Receive(now, differ, &Request{Delta: true, TypeURL: xdstype.ClusterURL})
		for range 10_000 {
			var last *Batch
			for _, e := range out {
				if e.Kind == Send {
					last = e.Batch
				}
			}
			if last == nil {
				break
			}
			r := &Request{Delta: true, TypeURL: xdstype.ClusterURL, Nonce: last.Nonce}
			if len(last.Entries) > 0 {
				r.Error = &statuspb.Status{Message: "it does not decode"}
				if named {
					r.Error.Message = errorsOf(last)
				}
				nacks++
			}
			differ.Turn()
			out = s.Receive(now, differ, r)
		}
	}
	b.ReportMetric(float64(nacks)/float64(b.N), "NACKs")
}

// errorsOf returns what Envoy says when it refuses all of a response of clusters.
func errorsOf(b *Batch) string {
	var errors []string
	for _, e := range b.Entries {
		errors = append(errors, e.Name()+": no such extension")
	}
	return "Error adding/updating cluster(s) " + strings.Join(errors, ", ")
}
