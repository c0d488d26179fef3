package ads

import (
	"fmt"
	"testing"
	"time"

	"github.com/pilotd/pilotd/xdstype"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
)

// FuzzSession gives a Session any events in any order, whatever a hostile client may think of. It must not panic, never
// have more than one response per type without an answer (but CDS, by time), and its timer must come to rest.
func FuzzSession(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("a hostile client, and resources that change under it"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &dice{data: data}
		m, table := newMesh(), NewNamesTable()
		var n uint64
		differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { n++; return n })
		s := New(differ, Options{Delta: in.roll(2) == 0, Sidecar: in.roll(2) == 0, MaxNames: in.roll(2) * 4,
			Doubt: xdstype.Set(in.roll(16))})
		now := time.Unix(1000, 0)
		var desired *desiredMesh
		for len(in.data) > 0 {
			switch in.roll(5) {
			case 0:
				desired = m.desired(
					map[xdstype.Type]Section{xdstype.Type(in.roll(numTypes)): m.section(xdstype.Type(in.roll(numTypes)),
						in.words())},
				)
				s.SetDesired(now, differ, desired)
			case 1:
				m.endpoints(in.name(), fmt.Sprint(in.roll(3)))
				s.Refresh(now, differ)
			case 2:
				now = now.Add(time.Duration(in.roll(256)) * 10 * time.Millisecond)
				for i := 0; !s.Deadline().IsZero() && !s.Deadline().After(now); i++ {
					if i > 10 {
						t.Fatal("the timer never rests")
					}
					s.Tick(now, differ)
				}
			default:
				r := in.request(table, s.opts.Delta, n)
				s.Receive(now, differ, &r)
			}
			differ.Turn()
			for typ := range s.types {
				if st := &s.types[typ]; len(st.flights) > maxFlights ||
					xdstype.Type(typ) != xdstype.Cluster && len(st.flights) > 1 {
					t.Fatalf("%d un-ACKed responses of %v", len(st.flights), xdstype.Type(typ))
				}
			}
		}
	})
}

// dice makes choices of bytes.
type dice struct{ data []byte }

func (d *dice) roll(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

func (d *dice) name() string { return []string{"a", "b", "c", "*", "", "\xff"}[d.roll(6)] }

func (d *dice) names() []string {
	out := []string{}
	for range d.roll(4) {
		out = append(out, d.name())
	}
	return out
}

func (d *dice) words() []string {
	out := d.names()
	for i := range out {
		out[i] += fmt.Sprintf("=%d", d.roll(3))
	}
	return out
}

func (d *dice) request(table *NamesTable, delta bool, last uint64) Request {
	r := Request{
		Delta:   delta,
		TypeURL: []string{xdstype.ClusterURL, xdstype.EndpointURL, xdstype.ListenerURL, xdstype.RouteURL, "other"}[d.roll(5)],
	}
	if back := uint64(d.roll(6)); back < 4 && back <= last {
		r.Nonce = fmt.Sprint(last - back)
	}
	if d.roll(3) == 0 {
		r.Error = &statuspb.Status{Message: []string{"", "a is bad", "b: bad, c: bad"}[d.roll(3)]}
	}
	if delta {
		r.Subscribe, r.Unsubscribe = table.Of(d.names()), table.Of(d.names())
		if d.roll(3) == 0 {
			r.Initial = table.VersionsOf(map[string]string{d.name(): "x", d.name(): "y"})
		}
		return r
	}
	r.Names = table.Of(d.names())
	r.Version = fmt.Sprint(d.roll(2))
	return r
}
