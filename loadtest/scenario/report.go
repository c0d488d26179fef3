package scenario

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// Report is all that a run has measured.
type Report struct {
	Target   string    `json:"target"`
	Protocol string    `json:"protocol"`
	Clients  int       `json:"clients"`
	Began    time.Time `json:"began"`
	Phases   []Phase   `json:"phases"`
	// Samples are what was seen every second.
	Samples []Sample `json:"samples"`
	// Ended are streams that ended while they should not have.
	Ended      int    `json:"ended,omitempty"`
	FirstError string `json:"firstError,omitempty"`
	// Resources is how many different resources all clients have got.
	Resources int `json:"resources"`
}

// Phase is one scenario of a run.
type Phase struct {
	Name    string        `json:"name"`
	Took    time.Duration `json:"nanoseconds"`
	Changes int           `json:"changes,omitempty"`
	// Latency is from the write to the receipt; of connecting, from the first dial until a client has all that it asked for. Of several
	// changes made one after the other it is the median of each rank.
	Latency measure.Latency `json:"latency"`
	// Each is the latency of each change, if they were made one after the other.
	Each []measure.Latency `json:"each,omitempty"`
	// Distribution is the percentiles, 0 to 100, of all latencies of all changes.
	Distribution []time.Duration `json:"distributionNanoseconds,omitempty"`
	// Staleness is the latency by second, under churn.
	Staleness []measure.Latency `json:"staleness,omitempty"`
	// Missing is how many clients did not get how many changes in time.
	Missing int `json:"missing,omitempty"`
	// Types are counts by type: CDS, EDS, …
	Types map[string]sidecar.Count `json:"types"`
	// CPU is the time that the server's process took in this phase; Resident its memory at the end, Peak the most so far.
	CPU      time.Duration `json:"cpuNanoseconds,omitempty"`
	Resident int64         `json:"residentBytes,omitempty"`
	Peak     int64         `json:"peakBytes,omitempty"`
	// Own is the CPU time of the load test: where it shares the machine with the server, what it takes makes latencies longer.
	Own time.Duration `json:"ownCPUNanoseconds"`
}

// Sample is the state at one moment.
type Sample struct {
	Seconds  float64 `json:"seconds"`
	Phase    string  `json:"phase"`
	Ready    int     `json:"ready"`
	Messages int64   `json:"messages"`
	Bytes    int64   `json:"bytes"`
	measure.Process
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

// Write prints the report as tables.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%d sidecars on %s, %s\n\n", r.Clients, r.Target, r.Protocol)
	fmt.Fprintln(t, "phase\tchanges\tfirst\tmedian\tp99\tlast\tmessages\tbytes\tuseless\tserver CPU\tmemory\tpeak\town CPU\t")
	for _, p := range r.Phases {
		c, l := p.Total(), p.Latency
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t\n", p.Name, p.Changes, measure.Short(l.First), measure.Short(l.Median),
			measure.Short(l.P99), measure.Short(l.Last), c.Messages, Size(c.Bytes), c.Useless, measure.Short(p.CPU), Size(p.Resident), Size(p.Peak), measure.Short(p.Own))
	}
	fmt.Fprintln(t, "\nphase\ttype\tmessages\tresources\tbytes\tuseless\tof bytes\trefused\t")
	for _, p := range r.Phases {
		for _, name := range typeNames() {
			if c := p.Types[name]; c.Messages > 0 {
				fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%d\t%s\t%d\t\n", p.Name, name, c.Messages, c.Resources, Size(c.Bytes), c.Useless, Size(c.UselessBytes), c.Refused)
			}
		}
	}
	for _, p := range r.Phases {
		if p.Missing > 0 {
			fmt.Fprintf(t, "\n%s: %d receipts are missing\n", p.Name, p.Missing)
		}
	}
	if r.Ended > 0 {
		fmt.Fprintf(t, "\n%d streams ended; the first: %s\n", r.Ended, r.FirstError)
	}
	return t.Flush()
}

// typeNames are the types as reports name them; the last is what no client asked for.
func typeNames() []string { return []string{"CDS", "EDS", "LDS", "RDS", "other"} }

// Size is a number of bytes as people read it.
func Size(n int64) string {
	switch f := float64(n); {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
