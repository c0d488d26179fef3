package discovery

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// replica has clients, of which each that is sent away comes to one of all replicas by chance.
type replica struct {
	all     []*replica
	clients []uint64 // the numbers of their streams
	newest  *uint64
	away    int
	chance  *rand.Rand
}

func (r *replica) Streams() int { return len(r.clients) }

func (r *replica) Newest() uint64 { return *r.newest }

func (r *replica) SendAway(newest uint64) bool {
	for i, id := range r.clients {
		if id <= newest {
			r.away++
			r.clients = slices.Delete(r.clients, i, i+1)
			r.all[r.chance.IntN(len(r.all))].come()
			return true
		}
	}
	return false
}

func (r *replica) come() {
	*r.newest++
	r.clients = append(r.clients, *r.newest)
}

// TestBalance has two replicas without clients beside one with all of them: it sends clients away, no more than it may
// in each round, until each has little more than its share. Then all rest. So they do when loads are not known, or
// differ by little.
func TestBalance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, round = 20, 10 * time.Second
		newest, chance := uint64(0), rand.New(rand.NewPCG(1, 2))
		replicas := make([]*replica, 3)
		balances := make([]*Balance, 3)
		for i := range replicas {
			replicas[i] = &replica{all: replicas, newest: &newest, chance: chance}
			balances[i] = &Balance{streams: replicas[i], most: most}
		}
		for range 900 {
			replicas[0].come()
		}
		loads := func(but int) (out []int) {
			for i, r := range replicas {
				if i != but {
					out = append(out, r.Streams())
				}
			}
			return out
		}
		run := func(rounds int) (away int) {
			for range rounds {
				for i, b := range balances {
					before := replicas[i].away
					b.SendAway(t.Context(), b.Round(loads(i)), round)
					if n := replicas[i].away - before; n > most {
						t.Errorf("%d are sent away in one round", n)
					}
					away += replicas[i].away - before
				}
			}
			return away
		}
		if n := run(restRounds); n != 0 {
			t.Errorf("%d clients are sent away that have just come", n)
		}
		away := run(60)
		most300 := slices.MaxFunc(replicas, func(a, b *replica) int { return a.Streams() - b.Streams() }).Streams()
		if most300 > 300*muchMore || away < 500 {
			t.Errorf("after %d were sent away one replica has %d of 900", away, most300)
		}
		if n := run(30); n > 0 {
			t.Errorf("%d are sent away though each has its share", n)
		}
		if n := balances[1].Round(nil); n != 0 {
			t.Errorf("%d are sent away by a replica that knows of no other", n)
		}
		replicas[0].clients = replicas[0].clients[:fewStreams]
		if n := balances[0].Round([]int{0, 1}); n != 0 { // far more than the mean, and few all the same
			t.Errorf("%d are sent away for a difference of few", n)
		}
	})
}
