package report

import (
	"time"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Cause says how a Problem was found, and what follows from it.
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
	// Unresolved: the object is in force, but it refers to another object that does not exist or cannot be used in this
	// way. What depends on the reference is left out.
	Unresolved Cause = "unresolved"
	// LeftOut: a resource made from the object breaks a rule of its receivers, so that part is not sent.
	LeftOut Cause = "left_out"
	// ClientRefused: a client refused (NACKed) a resource made from the object.
	ClientRefused Cause = "client_refused"
	// Panicked: pilotd's own code panicked over the object. What depends on it is left out.
	Panicked Cause = "panic"
)

// Problem is one thing that is wrong with one object. Comparable: equal Problems count as one.
type Problem struct {
	// Source is the name of the object's source; empty if it is unknown.
	Source string
	// Key is the object; zero for a file that does not parse.
	Key value.ObjectKey
	// Where is the file and line of an object from a file, "dir/a.yaml:12"; empty for others.
	Where string
	// Field is the path of the field, "spec.http[0].route"; empty if the whole object is meant.
	Field string
	// Cause says how the problem was found.
	Cause Cause
	// Reason says in one line what is wrong and what was expected.
	Reason string
	// Resource is the affected resource that was made from the object, "RDS 80, virtual host a.example.com:80"; empty
	// for problems of the object itself.
	Resource string
	// Security says that the problem may let traffic through that the user means to block.
	Security bool
}

// Client is a client that refused a resource.
type Client struct {
	// Proxy is its node id.
	Proxy string
	// Message is the client's error message, cut to MaxMessage.
	Message string
	// Since is the time of its first refusal.
	Since time.Time
}

// Standing is a Problem that exists now.
type Standing struct {
	Problem
	// Since is when the Problem began.
	Since time.Time
	// Clients are the first MaxClients clients that refused. ClientsInAll counts the refusals of all; a client that is
	// not listed counts again each time.
	Clients      []Client `json:",omitempty"`
	ClientsInAll int      `json:",omitempty"`
}

const (
	// MaxClients bounds the clients that are listed for one Problem.
	MaxClients = 16
	// MaxMessage bounds the stored part of a client's message, in bytes.
	MaxMessage = 1 << 10
	// MaxRefusals bounds the Problems caused by refusals of clients; further ones are only counted.
	MaxRefusals = 4096
)
