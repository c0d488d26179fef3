package ads

import (
	"fmt"
	"testing"
	"time"

	"github.com/pilotd/pilotd/xdstype"
)

// Sessions at the same state are sent the same Batch; a straggler gets its own, and so does one with another
// subscription.
func TestSessionsShareABatch(t *testing.T) {
	m, table := newMesh(), NewNamesTable()
	var n uint64
	differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { n++; return n })
	now := time.Unix(1000, 0)
	first := m.desired(map[xdstype.Type]Section{xdstype.Cluster: m.section(xdstype.Cluster, []string{"a=1", "b=1"})})
	var sessions []*Session
	for i := range 4 {
		s := New(differ, Options{Delta: true})
		s.SetDesired(now, differ, first)
		r := &Request{Delta: true, TypeURL: xdstype.ClusterURL}
		if i == 3 {
			r.Subscribe = table.Of([]string{"a", "b"})
		}
		sent := s.Receive(now, differ, r)[0].Batch
		if i != 2 { // the straggler
			s.Receive(now, differ, &Request{Delta: true, TypeURL: xdstype.ClusterURL, Nonce: sent.Nonce})
		}
		sessions = append(sessions, s)
	}
	differ.Turn()
	second := m.desired(map[xdstype.Type]Section{xdstype.Cluster: m.section(xdstype.Cluster, []string{"a=2", "b=1"})})
	var got []string
	for _, s := range sessions {
		effects := s.SetDesired(now, differ, second)
		if len(effects) == 0 {
			got = append(got, "")
			continue
		}
		got = append(got, effects[0].Batch.Nonce)
	}
	if want := []string{"3", "3", "", "4"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("nonces %q, want %q", got, want)
	}
}

// BenchmarkOneChangeToMany is one changed cluster of 1,000 for 1,000 Sessions, with their ACKs.
func BenchmarkOneChangeToMany(b *testing.B) {
	for _, delta := range []bool{true, false} {
		b.Run(fmt.Sprintf("delta=%v", delta), func(b *testing.B) { benchChange(b, delta) })
	}
}

// BenchmarkConnect is one client of 1,000 clusters that connects from nothing, alone in its pass.
func BenchmarkConnect(b *testing.B) {
	m, table := newMesh(), NewNamesTable()
	var n uint64
	differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { n++; return n })
	now := time.Unix(1000, 0)
	var words, names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i))
		words = append(words, names[i]+"=0")
	}
	desired := m.desired(
		map[xdstype.Type]Section{
			xdstype.Cluster:  m.section(xdstype.Cluster, words),
			xdstype.Endpoint: m.section(xdstype.Endpoint, words),
		},
	)
	for _, delta := range []bool{true, false} {
		b.Run(fmt.Sprintf("delta=%v", delta), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := New(differ, Options{Delta: delta})
				s.SetDesired(now, differ, desired)
				s.Receive(now, differ, &Request{Delta: delta, TypeURL: xdstype.ClusterURL})
				differ.Turn()
				eds := &Request{Delta: delta, TypeURL: xdstype.EndpointURL}
				if delta {
					eds.Subscribe = table.Of(names)
				} else {
					eds.Names = table.Of(names)
				}
				s.Receive(now, differ, eds)
				differ.Turn()
			}
		})
	}
}

func benchChange(b *testing.B, delta bool) {
	m, table := newMesh(), NewNamesTable()
	var n uint64
	differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { n++; return n })
	now := time.Unix(1000, 0)
	var words []string
	for i := range 1000 {
		words = append(words, fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local=0", i))
	}
	sections := map[xdstype.Type]Section{xdstype.Cluster: m.section(xdstype.Cluster, words)}
	desired := m.desired(sections)
	var sessions []*Session
	for range 1000 {
		s := New(differ, Options{Delta: delta})
		s.SetDesired(now, differ, desired)
		e := s.Receive(now, differ, &Request{Delta: delta, TypeURL: xdstype.ClusterURL})
		s.Receive(now, differ, &Request{Delta: delta, TypeURL: xdstype.ClusterURL, Nonce: e[0].Batch.Nonce})
		sessions = append(sessions, s)
	}
	name := "outbound|80||service-7.namespace.svc.cluster.local"
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		section := sections[xdstype.Cluster].Set(name, m.entry(xdstype.Cluster, name, fmt.Sprint(i%2+1)))
		sections[xdstype.Cluster] = section
		m.made = nil
		desired := m.desired(sections)
		differ.Turn()
		for _, s := range sessions {
			e := s.SetDesired(now, differ, desired)
			ack := &Request{Delta: delta, TypeURL: xdstype.ClusterURL, Nonce: e[0].Batch.Nonce}
			s.Receive(now, differ, ack)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/session")
}
