package shard

import (
	"time"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard/admission"
	"github.com/pilotd/pilotd/xdstype"
)

// Stream is where the responses of one client go. The worker goroutine calls its methods, which must never block.
type Stream interface {
	// ID identifies the stream. It is never used again in this process.
	ID() uint64
	// Send sends r after all that was sent before.
	Send(typeURL string, r *encodecache.Response)
	// Close ends the stream with the status of err.
	Close(err error)
}

// A Stream may implement Backlogged too. While a response has not left the process, time does not bring its credit
// back.
type Backlogged interface {
	// Backlogged reports whether something that was given to Send has not been written yet.
	Backlogged() bool
}

// A Stream may implement Ended too. What waits for the stream then waits no longer than the stream lasts.
type Ended interface {
	// Done returns a channel that is closed when the stream has ended, whoever ended it.
	Done() <-chan struct{}
}

// Planner computes what proxies should have. It answers by calling the Shards, which are its classes.Sink.
type Planner interface {
	// Attach asks for the class and ResourceSet of p. The planner tells them, and each change of them, by Assigned until
	// Detach.
	Attach(id uint64, p *proxy.Proxy)
	// Detach ends that.
	Detach(id uint64)
}

// A Planner may implement Demand too, to make the resources of a type only while clients ask for them.
type Demand interface {
	// Want tells that a client has asked for a type whose resources are made on demand. It counts until Detach.
	Want(id uint64, t xdstype.Type)
}

// Metrics are functions that the worker goroutines call when something happens. Each may be nil.
type Metrics struct {
	// Sent is called for each response to each client, with its size and the time since the change that it is for; the
	// time is negative if the response answers a request.
	Sent func(t xdstype.Type, bytes int, since time.Duration)
	// Converged is called when the last response for a change goes to a client, with the time since the change.
	Converged func(since time.Duration)
	// Queued is called with the time that a change waited for its shard.
	Queued func(lane Lane, waited time.Duration)
	// Withheld is called for clients that ask for secrets and get none of them.
	Withheld func(Withheld)
	// Expired is called for requests with the nonce of an older response, Unserved for those for types that are not
	// served.
	Expired  func(t xdstype.Type)
	Unserved func(typeURL string)
	// Admitted is called when a proxy that connects gets its first answer, with the time that it has waited.
	Admitted func(p admission.Priority, waited time.Duration)
	// Unanswered is called for streams that end because their client has not answered a response.
	Unanswered func(t xdstype.Type)
	// Refused is called for each refusal, and again when the search after one ends. It must neither block nor log.
	Refused func(r Refusal)
	// Panicked is called for each panic that was caught. It must not block either.
	Panicked func(f Fault)
	// Healed is called with Offences that are held back from no client any more, because their content has changed or is
	// gone, or the clients that refused it are gone. It must not block either.
	Healed func(offences []Offence)
}

// Lane is one of the two ways by which changes come.
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

// filled returns m with functions that do nothing in place of nil.
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
	if m.Withheld == nil {
		m.Withheld = func(Withheld) {}
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
