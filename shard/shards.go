package shard

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// ErrStopped says that the shards have stopped.
var ErrStopped = errors.New("the shards have stopped")

// Options are settings of Shards.
type Options struct {
	// Workers is the number of shards; 0 is one for each core.
	Workers int
	// Types are the types that are served; nil is the standard ones.
	Types *xdstype.Table
	// Planner computes what each proxy should have. The Shards tell it which proxies there are.
	Planner Planner
	// Endpoints returns an EndpointTable that is at least as new as any ResourceSet so far. It is called when a proxy
	// comes before any endpoint has changed; nil stands for an empty table.
	Endpoints func() *snapshot.EndpointTable
	// Names interns subscriptions. It must be the table that the streams' scanners use.
	Names *ads.NamesTable
	// Assembler makes the responses; nil makes them without a control plane's name.
	Assembler *encodecache.Assembler
	// MaxNames limits the names of one type that a stream may subscribe to; 0 is no limit.
	MaxNames int
	// MaxNameBytes limits the memory of the names of all types that a stream subscribes to; 0 is no limit.
	MaxNameBytes int
	// Planning is how many proxies the planner is asked for at once; 0 is 16 for each core. The others wait their turn.
	Planning int
	// Underway bounds the bytes of answers to proxies that connect which these have not shown to have read; 0 is 256 MiB.
	// Beyond it, proxies that connect wait.
	Underway int
	// Unanswered is how long a client may leave a response of endpoints, listeners or routes unanswered while the next one
	// waits for the answer; 0 is for ever.
	Unanswered time.Duration
	// Now and After are the clock.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time

	// Secrets has the secrets of clients; nil for none.
	Secrets Secrets

	Metrics Metrics

	// join makes resources from endpoints. Tests replace it, for they have ResourceSets of their own.
	join join
	// sabotage is for tests, which panic in it: it is called before code whose panics are contained. id is the stream's,
	// or zero.
	sabotage func(doing string, id uint64)
}

// join makes resources from a ResourceSet's assignments.
type join struct {
	assignmentsOf func(*classes.ResourceSet, value.ServiceKey) []*classes.Assignment
	entry         func(*classes.Assignment, *snapshot.EndpointTable) *encodecache.Entry
}

// Shards are the workers and the registry of streams. It implements classes.Sink.
type Shards struct {
	// Immutable after New.
	opts    Options
	clock   clock
	workers []*worker
	clients *xsync.MapOf[uint64, *client]
	stopped chan struct{}
	blocks  *encodecache.Table[blockKey, encodecache.Block]
	gate    *admission.Gate
	budget  *admission.Budget
	// verdicts has what clients have refused.
	verdicts *ads.Verdicts
	kept     kept
	memory   memory
	// sections finds what the endpoints of different ResourceSets have in common.
	sections *chunked.Pool[*encodecache.Entry]

	nonces atomic.Uint64

	mu sync.Mutex
	// Guarded by mu.
	spreads map[*classes.Class]*spread
	doubts  doubts
}

// spread says on which workers the members of a class are.
type spread struct {
	total int
	on    []int // by worker
}

// spill is how many members of a class a shard takes before the next shard does.
const spill = 256

// New makes Shards that work once Run is called.
func New(o Options) *Shards {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Types == nil {
		o.Types = xdstype.Standard()
	}
	if o.Names == nil {
		o.Names = ads.NewNamesTable()
	}
	if o.Endpoints == nil {
		o.Endpoints = func() *snapshot.EndpointTable { return &snapshot.EndpointTable{} }
	}
	if o.join.entry == nil {
		o.join = join{(*classes.ResourceSet).AssignmentsOf, (*classes.Assignment).Entry}
	}
	if o.sabotage == nil {
		o.sabotage = func(string, uint64) {}
	}
	o.Metrics = o.Metrics.filled()
	s := &Shards{
		opts: o, clock: newClock(o.Now), clients: xsync.NewMapOf[uint64, *client](), stopped: make(chan struct{}),
		blocks: newBlocks(), sections: chunked.NewPool[*encodecache.Entry](),
		spreads: map[*classes.Class]*spread{}, doubts: newDoubts(), verdicts: ads.NewVerdicts(),
	}
	s.gate = admission.NewGate(cmp.Or(o.Planning, 16*runtime.GOMAXPROCS(0)))
	s.kept.most = mostKept
	var wake []func()
	for i := range o.Workers {
		w := newWorker(s, i)
		s.workers, wake = append(s.workers, w), append(wake, w.slots.signal)
	}
	s.budget = admission.NewBudget(cmp.Or(o.Underway, 256<<20), wake)
	return s
}

// Run runs the workers until ctx ends, and returns when they have ended too.
func (s *Shards) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range s.workers {
		wg.Go(func() { w.run(ctx) })
	}
	wg.Wait()
	close(s.stopped)
}

// Attach begins a stream with its first request. The answer comes when it is the proxy's turn: see package admission.
// The planner may answer before Attach returns.
func (s *Shards) Attach(st Stream, p *proxy.Proxy, first ads.Request) error {
	select {
	case <-s.stopped:
		return ErrStopped
	default:
	}
	m := newClient(st, p, first, s.clock.now())
	s.clients.Store(m.id, m)
	m.source = s.opts.Planner
	priority := firstPriority(&first)
	s.gate.Join(m, admission.TurnOf(m.id, m.came, priority), priority)
	return nil
}

// Receive takes a further request. It waits while the one before is undecided, so that a flood delays only its sender,
// and no longer than the stream lasts: a client that leaves meanwhile is detached at once.
func (s *Shards) Receive(id uint64, r ads.Request) {
	m, ok := s.clients.Load(id)
	if !ok {
		return
	}
	select {
	case m.room <- struct{}{}:
		m.post(func(in *mail) { in.request = &r })
	case <-m.done:
	case <-s.stopped:
	}
}

// Detach ends a stream: nothing is sent to it any more once the worker has seen that.
func (s *Shards) Detach(id uint64) {
	m, ok := s.clients.LoadAndDelete(id)
	if !ok {
		return
	}
	s.gate.Leave(m)
	m.post(func(in *mail) { in.gone = true })
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.class != nil {
		s.leave(m.class, m.worker.index)
		m.class = nil
	}
	m.left = true
}

// Assigned implements classes.Sink: it gives a proxy its shard, or moves it to another class.
func (s *Shards) Assigned(id uint64, c *classes.Class, w *classes.ResourceSet) {
	m, ok := s.clients.Load(id)
	if !ok {
		return
	}
	s.gate.Answered(m)
	s.mu.Lock()
	if m.left {
		s.mu.Unlock()
		return
	}
	sp := s.spreads[c]
	if sp == nil {
		sp = &spread{on: make([]int, len(s.workers))}
		s.spreads[c] = sp
	}
	home := m.worker
	if home == nil {
		home = s.workers[(shardOf(c)+sp.total/spill)%len(s.workers)]
	}
	sp.total++
	sp.on[home.index]++
	if m.class != nil {
		s.leave(m.class, home.index)
	}
	m.class, m.worker = c, home
	doubt := s.doubts.of(m.proxy.ID)
	s.mu.Unlock()
	m.postTo(home, func(in *mail) { in.assigned = &assignment{class: c, set: w, doubt: doubt} })
}

// leave takes a client out of its class's count; the caller holds mu.
func (s *Shards) leave(c *classes.Class, worker int) {
	sp := s.spreads[c]
	sp.total--
	sp.on[worker]--
	if sp.total == 0 {
		delete(s.spreads, c)
	}
}

// shardOf hashes the name of a class.
func shardOf(c *classes.Class) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Name))
	return int(h.Sum32() & (1<<30 - 1))
}

// Advanced implements classes.Sink: each worker that has members of a class gets its new ResourceSet, and each the
// endpoints that go with them.
func (s *Shards) Advanced(sets map[*classes.Class]*classes.ResourceSet, e classes.Endpoints) {
	now := s.clock.now()
	mine := make([]map[*classes.Class]*classes.ResourceSet, len(s.workers))
	s.mu.Lock()
	for c, w := range sets {
		sp := s.spreads[c]
		if sp == nil {
			continue
		}
		for i, n := range sp.on {
			if n == 0 {
				continue
			}
			if mine[i] == nil {
				mine[i] = map[*classes.Class]*classes.ResourceSet{}
			}
			mine[i][c] = w
		}
	}
	s.mu.Unlock()
	for i, m := range mine {
		if len(m)+len(e.Services) > 0 {
			s.workers[i].slots.postResourceSets(m, e, now)
		}
	}
}

// EndpointsChanged implements classes.Sink.
func (s *Shards) EndpointsChanged(t *snapshot.EndpointTable, services []value.ServiceKey) {
	now := s.clock.now()
	for _, w := range s.workers {
		w.slots.postEndpoints(t, services, now)
	}
}

// nonce returns the number of the next response.
func (s *Shards) nonce() uint64 { return s.nonces.Add(1) }
