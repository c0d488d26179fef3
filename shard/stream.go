package shard

import (
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/xdstype"
)

// Stream is where the responses of one client go. Its methods are called by the worker goroutine and never block.
type Stream interface {
	// ID is never used again in this process.
	ID() uint64
	// Send sends r after all that was sent before.
	Send(typeURL string, r *encodecache.Response)
	// Close ends the stream with the status of err.
	Close(err error)
}

// Backlogged is what a Stream may implement besides: a response that has not left the process does not get its credit
// back by time.
type Backlogged interface {
	// Backlogged reports whether something that was given to Send has not been written yet.
	Backlogged() bool
}

// Ended is what a Stream may implement besides: what waits for the stream waits no longer than it lasts.
type Ended interface {
	// Done is closed when the stream has ended, whoever ended it.
	Done() <-chan struct{}
}

// Planner computes what proxies should have, and answers through the plan.Sink that the Shards are.
type Planner interface {
	// Attach asks for the class and ResourceSet of p, told by Assigned until Detach.
	Attach(id uint64, p *proxy.Proxy)
	// Detach ends that.
	Detach(id uint64)
}

// Demand is what a Planner may implement besides: it makes the resources of a type only while clients ask for them.
type Demand interface {
	// Want tells that a client has asked for a type whose resources are made on demand. It counts until Detach.
	Want(id uint64, t xdstype.Type)
}

// Metrics are told what happens, by the worker goroutines. Each may be nil.
type Metrics struct {
	// Sent is told of each response for each client: its size, and the time since the change that it is for; negative
	// for one that answers a request.
	Sent func(t xdstype.Type, bytes int, since time.Duration)
	// Converged is told when the last response for a change goes to a client, and how long after the change.
	Converged func(since time.Duration)
	// Queued is told how long a change waited for its shard.
	Queued func(lane Lane, waited time.Duration)
	// Expired is told of requests with the nonce of an older response, Unserved of those for types that nobody serves.
	Expired  func(t xdstype.Type)
	Unserved func(typeURL string)
	// Admitted is told when a proxy that connects gets its first answer, and how long it has waited for it.
	Admitted func(p admission.Priority, waited time.Duration)
	// Unanswered is told of streams that end because their client has not answered a response.
	Unanswered func(t xdstype.Type)
	// Refused is told of refusals, and again when a search after one ends. It must not block, or log: a worker calls
	// it.
	Refused func(r Refusal)
	// Panicked is told of each panic that was caught. It must not block either.
	Panicked func(f Fault)
	// Healed is told of Offences that no client is kept from any more: their content has changed or is gone, or the
	// clients that refused it are. It must not block either.
	Healed func(offences []Offence)
}

// Lane is one of the two ways on which changes come.
type Lane uint8

// The lanes.
const (
	ConfigLane Lane = iota
	EndpointLane
)

func (l Lane) String() string {
	if l == EndpointLane {
		return "endpoints"
	}
	return "config"
}

// filled is m with functions that do nothing where it has none.
func (m Metrics) filled() Metrics {
	if m.Sent == nil {
		m.Sent = func(xdstype.Type, int, time.Duration) {}
	}
	if m.Converged == nil {
		m.Converged = func(time.Duration) {}
	}
	if m.Queued == nil {
		m.Queued = func(Lane, time.Duration) {}
	}
	if m.Expired == nil {
		m.Expired = func(xdstype.Type) {}
	}
	if m.Unserved == nil {
		m.Unserved = func(string) {}
	}
	if m.Admitted == nil {
		m.Admitted = func(admission.Priority, time.Duration) {}
	}
	if m.Unanswered == nil {
		m.Unanswered = func(xdstype.Type) {}
	}
	if m.Refused == nil {
		m.Refused = func(Refusal) {}
	}
	if m.Panicked == nil {
		m.Panicked = func(Fault) {}
	}
	if m.Healed == nil {
		m.Healed = func([]Offence) {}
	}
	return m
}
