package scenario

import (
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// Schema names the JSON form of a Report. Fields may be added to it; an incompatible form gets another name.
const Schema = "pilotd.loadtest.run/v1"

// Report has all results of a run. docs/loadtest.md explains its JSON.
type Report struct {
	Schema   string    `json:"schema"`
	Target   string    `json:"target"`
	Protocol string    `json:"protocol"`
	TLS      bool      `json:"tls"`
	Clients  int       `json:"clients"`
	Kinds    []Kind    `json:"kinds"`
	Shared   int       `json:"clientsPerConnection"`
	Began    time.Time `json:"began"`
	Phases   []Phase   `json:"phases"`
	// Samples are taken every second.
	Samples []Sample `json:"samples"`
	// Ended counts streams that ended unexpectedly.
	Ended      int    `json:"ended"`
	FirstError string `json:"firstError,omitempty"`
	// Resources is the number of different resources that the clients have at the end.
	Resources int `json:"resources"`
}

// Kind is the number of clients of one kind.
type Kind struct {
	Name    string `json:"name"`
	Clients int    `json:"clients"`
}

// Phase is one scenario of a run.
type Phase struct {
	Name string        `json:"name"`
	Took time.Duration `json:"nanoseconds"`
	// Changes is the number of changes made; the last of them concerned Concerned clients.
	Changes   int `json:"changes"`
	Concerned int `json:"concerned"`
	// Latency is the time from a write to its receipt; for connecting, from the first dial until a client has
	// everything that it asked for. For changes made one after the other it has the median of each rank.
	Latency measure.Latency `json:"latency"`
	// Each is the latency of each change, if changes were made one after the other.
	Each []measure.Latency `json:"each,omitempty"`
	// Distribution has the percentiles 0 to 100 of all latencies of all changes.
	Distribution []time.Duration `json:"distributionNanoseconds,omitempty"`
	// Staleness is the latency in each second, under churn.
	Staleness []measure.Latency `json:"staleness,omitempty"`
	// Missing counts the pairs of a client and a change that did not reach it in time.
	Missing int `json:"missing"`
	// Ended counts streams, and attempts to open one, that ended unexpectedly.
	Ended int `json:"ended"`
	// Types are counts by type: CDS, EDS, …
	Types map[string]sidecar.Count `json:"types"`
	// CPU is the time that the server's process used in this phase. Resident is its memory at the end, Heap the part of
	// it that is Go's heap, Peak its largest memory so far. Growth is how much its memory grows in a second, over the
	// second half of the phase.
	CPU      time.Duration `json:"cpuNanoseconds,omitempty"`
	Resident int64         `json:"residentBytes,omitempty"`
	Heap     int64         `json:"heapBytes,omitempty"`
	Peak     int64         `json:"peakBytes,omitempty"`
	Growth   float64       `json:"growthBytesPerSecond,omitempty"`
	// Own is the CPU time of the load test itself: if it shares a machine with the server, its work makes latencies
	// longer. OwnResident is its memory at the end.
	Own         time.Duration `json:"ownCPUNanoseconds"`
	OwnResident int64         `json:"ownResidentBytes"`
}

// Sample is the state at one moment.
type Sample struct {
	Seconds  float64 `json:"seconds"`
	Phase    string  `json:"phase"`
	Ready    int     `json:"ready"`
	Streams  int     `json:"streams"`
	Messages int64   `json:"messages"`
	Bytes    int64   `json:"bytes"`
	measure.Process
}

// newReport returns the report of a run that begins now.
func newReport(o *Options) Report {
	r := Report{Schema: Schema, Clients: o.Total(), Shared: max(1, o.PerConnection), Protocol: "State of the World",
		Began: time.Now()}
	for i, t := range o.Targets {
		if i > 0 {
			r.Target += ", "
		}
		r.Target += t.Address
		r.TLS = r.TLS || t.TLS != nil
	}
	if o.Delta {
		r.Protocol = "Delta"
	}
	for k, n := range []int{o.Sidecars, o.Gateways, o.Proxyless} {
		if n > 0 {
			r.Kinds = append(r.Kinds, Kind{sidecar.Kind(k).String(), n})
		}
	}
	return r
}

// Total sums the counts of all types.
func (p *Phase) Total() (c sidecar.Count) {
	for _, t := range p.Types {
		c.Messages += t.Messages
		c.Bytes += t.Bytes
		c.Resources += t.Resources
		c.Useless += t.Useless
		c.UselessBytes += t.UselessBytes
		c.Refused += t.Refused
	}
	return c
}
