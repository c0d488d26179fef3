package scenario

import (
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// Schema names the form of a Report as JSON. Fields may be added to it; another form has another name.
const Schema = "pilotd.loadtest.run/v1"

// Report is all that a run has measured. docs/loadtest.md says what its JSON means.
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
	// Samples are what was seen every second.
	Samples []Sample `json:"samples"`
	// Ended are streams that ended while they should not have.
	Ended      int    `json:"ended"`
	FirstError string `json:"firstError,omitempty"`
	// Resources is how many different resources all clients have at the end.
	Resources int `json:"resources"`
}

// Kind is how many clients of a kind there are.
type Kind struct {
	Name    string `json:"name"`
	Clients int    `json:"clients"`
}

// Phase is one scenario of a run.
type Phase struct {
	Name string        `json:"name"`
	Took time.Duration `json:"nanoseconds"`
	// Changes were made; the last of them concerned Concerned clients.
	Changes   int `json:"changes"`
	Concerned int `json:"concerned"`
	// Latency is from the write to the receipt; of connecting, from the first dial until a client has all that it asked
	// for. Of several changes made one after the other it is the median of each rank.
	Latency measure.Latency `json:"latency"`
	// Each is the latency of each change, if they were made one after the other.
	Each []measure.Latency `json:"each,omitempty"`
	// Distribution is the percentiles, 0 to 100, of all latencies of all changes.
	Distribution []time.Duration `json:"distributionNanoseconds,omitempty"`
	// Staleness is the latency by second, under churn.
	Staleness []measure.Latency `json:"staleness,omitempty"`
	// Missing is how many clients did not get how many changes in time.
	Missing int `json:"missing"`
	// Ended is how many streams, and attempts to have one, ended that the clients did not end.
	Ended int `json:"ended"`
	// Types are counts by type: CDS, EDS, …
	Types map[string]sidecar.Count `json:"types"`
	// CPU is the time that the server's process took in this phase; Resident its memory at the end, and Heap what Go's
	// heap is of that; Peak the most that was seen. Growth is how much memory it takes more each second, over the
	// second half of the phase.
	CPU      time.Duration `json:"cpuNanoseconds,omitempty"`
	Resident int64         `json:"residentBytes,omitempty"`
	Heap     int64         `json:"heapBytes,omitempty"`
	Peak     int64         `json:"peakBytes,omitempty"`
	Growth   float64       `json:"growthBytesPerSecond,omitempty"`
	// Own is the CPU time of the load test: where it shares the machine with the server, what it takes makes latencies
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
