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
	// Targets are the servers; each gets a part of the connections.
	Targets []wire.Endpoint
	Clients
	// Dialing bounds the connections that are made at the same moment; 0 means all.
	Dialing int
	// Scenarios run after connecting, in order; Names lists the possible ones.
	Scenarios []string
	// Mesh provides the nodes of the clients.
	Mesh *mesh.Mesh
	// Edits makes changes; nil if no scenario needs it.
	Edits Edits
	// Server measures the server's CPU time and memory; nil if they are not measured.
	Server measure.Source
	// Kill says how to kill the first server.
	Kill Kill
	// Changes is the number of changes in endpoint, route, routes, rolling and soak.
	Changes int
	// Share is the part of the clients that misbehaves.
	Share float64
	// ReadRate is how many bytes slow clients read in a second.
	ReadRate int
	// Rate is the number of endpoint changes of churn and soak in a second; a soak with Rate 0 makes changes as fast as
	// every client gets them. Duration is how long churn and idle last.
	Rate     float64
	Duration time.Duration
	// Patience bounds the time in which a change must reach every client.
	Patience time.Duration
	// Progress receives a line every second; nil for none.
	Progress io.Writer
}

// Clients are the numbers of clients of each kind.
type Clients struct {
	Sidecars, Gateways, Proxyless int
	// Destinations is the number of services that each proxyless client calls.
	Destinations int
	// PerConnection is the number of clients on one connection; 0 means 1.
	PerConnection int
	// Delta selects the incremental variant of xDS; proxyless clients do not support it.
	Delta bool
}

// Total returns the number of all clients.
func (c *Clients) Total() int { return c.Sidecars + c.Gateways + c.Proxyless }
