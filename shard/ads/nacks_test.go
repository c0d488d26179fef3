package ads

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/pilotd/pilotd/xdstype"
)

// A response of many resources with a few bad ones among them, of which the client says only that something is wrong,
// is refused about log2(resources) times for each bad one until these are found and held back, and all others are
// there.
func TestRefusalCostsFewNACKs(t *testing.T) {
	for _, resources := range []int{1, 64, 1000} {
		for _, bad := range []int{1, 2, 5, 20} {
			for _, delta := range []bool{false, true} {
				if bad > resources {
					continue
				}
				t.Run(fmt.Sprintf("resources=%d/bad=%d/delta=%v", resources, bad, delta), func(t *testing.T) {
					for seed := range uint64(2) {
						c := newRefuser(resources, bad, delta, rand.New(rand.NewPCG(seed, 1)))
						c.run(t)
						if most := bad*bits.Len(uint(resources-1)) + 4; c.nacks > most {
							t.Errorf("seed %d: %d NACKs, want at most %d", seed, c.nacks, most)
						}
						c.check(t)
					}
				})
			}
		}
	}
}

// refuser is a client that refuses each response with a bad resource in it, whole, and does not say which it is.
type refuser struct {
	session *Session
	differ  *Differ
	delta   bool
	names   []string
	bad     map[string]bool
	has     map[string]bool
	nacks   int
}

func newRefuser(resources, bad int, delta bool, r *rand.Rand) *refuser {
	m := newMesh()
	c := &refuser{delta: delta, bad: map[string]bool{}, has: map[string]bool{}}
	var nonce uint64
	c.differ = NewDiffer(xdstype.Standard(), NewNamesTable(), NewVerdicts(),
		func() uint64 { nonce++; return nonce })
	c.session = New(c.differ, Options{Delta: delta})
	var words []string
	for i := range resources {
		c.names = append(c.names, fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i))
		words = append(words, c.names[i]+"=1")
	}
	for _, i := range r.Perm(resources)[:bad] {
		c.bad[c.names[i]] = true
	}
	c.session.SetDesired(time.Unix(1000, 0), c.differ,
		m.desired(map[xdstype.Type]Section{xdstype.Cluster: m.section(xdstype.Cluster, words)}))
	return c
}

// run lets the client answer until it is sent nothing more.
func (c *refuser) run(t *testing.T) {
	now := time.Unix(1000, 0)
	effects := c.session.Receive(now, c.differ, &Request{Delta: c.delta, TypeURL: xdstype.ClusterURL})
	for range 10_000 {
		var last *Batch
		for _, e := range effects {
			if e.Kind == Send {
				last = e.Batch
			}
		}
		if last == nil {
			return
		}
		c.differ.Turn()
		effects = c.session.Receive(now, c.differ, c.answer(last))
	}
	t.Fatal("it does not end")
}

// answer returns an ACK, or a NACK if the response has anything bad.
func (c *refuser) answer(b *Batch) *Request {
	r := &Request{Delta: c.delta, TypeURL: xdstype.ClusterURL, Nonce: b.Nonce, Version: b.Version}
	for _, e := range b.Entries {
		if c.bad[e.Name()] {
			c.nacks++
			r.Error, r.Version = &statuspb.Status{Message: "something is wrong"}, ""
			return r
		}
	}
	if !c.delta {
		clear(c.has)
	}
	for _, e := range b.Entries {
		c.has[e.Name()] = true
	}
	return r
}

// check fails the test unless the client has all that is good.
func (c *refuser) check(t *testing.T) {
	t.Helper()
	for _, name := range c.names {
		if c.has[name] == c.bad[name] {
			t.Errorf("%s: bad %v, there %v", name, c.bad[name], c.has[name])
			return
		}
	}
}
