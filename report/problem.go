package report

import (
	"time"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Cause says where a Problem was found, and with that what follows from it.
type Cause string

// The causes. They are the values of the metric label "cause".
const (
	// Invalid: the object was refused when it was read; its last good version stays in force.
	Invalid Cause = "invalid"
	// Unreadable: a file or a message of a source does not parse; what was read of it before stays in force.
	Unreadable Cause = "unreadable"
	// Unavailable: a source cannot read a kind of object at all, for lack of permission or because the server fails.
	Unavailable Cause = "unavailable"
	// NotServed: the object is in force, but something in it is not served by pilotd yet.
	NotServed Cause = "not_served"
	// Unresolved: the object is in force, but it names another one that is not there or cannot be used so; what depends
	// on that is left out.
	Unresolved Cause = "unresolved"
	// LeftOut: what was made of the object breaks a rule of its receivers, and that part is not sent.
	LeftOut Cause = "left_out"
	// ClientRefused: a client refused what was made of the object (NACK).
	ClientRefused Cause = "client_refused"
	// Panicked: handling the object ended in a fault of pilotd itself; what depends on it is left out.
	Panicked Cause = "panic"
)

// Problem is one thing that is wrong with one object. Comparable: equal Problems are one.
type Problem struct {
	// Source is the name of the source that the object comes from; empty where it is not known.
	Source string
	// Key is the object; zero for a file that does not parse.
	Key value.ObjectKey
	// Where is the file and line of an object from a file, "dir/a.yaml:12"; empty for others.
	Where string
	// Field is the path of the offending field, "spec.http[0].route"; empty when the whole object is meant.
	Field string
	// Cause is where the problem was found.
	Cause Cause
	// Reason says in one line what is wrong and what was expected.
	Reason string
	// Resource is what was made of the object and is concerned, "RDS 80, virtual host a.example.com:80"; empty for
	// problems of the object itself.
	Resource string
	// Security tells that ignoring the problem may let traffic through that the user means to stop.
	Security bool
}

// Client is a client that refused something.
type Client struct {
	// Proxy is its node id.
	Proxy string
	// Message is what it said, cut to MaxMessage.
	Message string
	// Since is when it said so first.
	Since time.Time
}

// Standing is a Problem that stands now.
type Standing struct {
	Problem
	// Since is when it began.
	Since time.Time
	// Clients are the first MaxClients of those that refused. ClientsInAll counts refusals by all; a client that is not
	// among Clients counts each time that it joins.
	Clients      []Client `json:",omitempty"`
	ClientsInAll int      `json:",omitempty"`
}

const (
	// MaxClients bounds the clients that are kept of one Problem.
	MaxClients = 16
	// MaxMessage bounds what is kept of a client's message, in bytes.
	MaxMessage = 1 << 10
	// MaxRefusals bounds the Problems that clients can bring about; further ones are only counted.
	MaxRefusals = 4096
)
