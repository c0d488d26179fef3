package scenario

import (
	"io"
	"time"

	"github.com/pilotd/pilotd/loadtest/measure"
	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/wire"
)

// Options say what to run.
type Options struct {
	// Targets are the servers; connections are spread over them.
	Targets []wire.Endpoint
	Clients
	// Dialing is how many connections are made at the same moment; all when 0.
	Dialing int
	// Scenarios follow the connect storm, in order; Names are those that there are.
	Scenarios []string
	// Mesh has the nodes of the clients.
	Mesh *mesh.Mesh
	// Edits is what is edited; nil if no scenario edits.
	Edits Edits
	// Server is where the server's CPU time and memory are read; nil if nowhere.
	Server measure.Source
	// Kill ends the first server, and starts it again if it is to be.
	Kill Kill
	// Changes is how many changes endpoint, route, routes, rolling and soak make.
	Changes int
	// Share of the clients misbehave.
	Share float64
	// ReadRate is how many bytes a second the slow read.
	ReadRate int
	// Rate is how many endpoint changes churn and soak make in a second, churn for Duration, which is that of idle too.
	// A soak whose Rate is 0 makes changes as fast as everybody gets them.
	Rate     float64
	Duration time.Duration
	// Patience is how long a change may take to reach everyone.
	Patience time.Duration
	// Progress is where a line is written every second.
	Progress io.Writer
}

// Clients are how many of which kind there are.
type Clients struct {
	Sidecars, Gateways, Proxyless int
	// Destinations is how many services each proxyless client calls.
	Destinations int
	// PerConnection is how many clients share a connection; 1 by default.
	PerConnection int
	// Delta chooses the incremental protocol, which proxyless clients do not speak.
	Delta bool
}

// Total returns how many there are.
func (c *Clients) Total() int { return c.Sidecars + c.Gateways + c.Proxyless }
