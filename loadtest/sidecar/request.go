package sidecar

import (
	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// Request is a request that a Client makes.
type Request struct {
	// Type is what it is about; it means nothing where the answered response is of a type that is not known.
	Type xdstype.Type

	message wire.Request
	initial []*Resource // what the client has, in the first request of a stream: encoded when it is sent
}

// Parts encodes the request; the names, which can be many, are those of all clients that ask for the same.
func (r *Request) Parts() (head, names, tail []byte) {
	m := r.message
	for _, have := range r.initial {
		m.Versions = wire.AppendVersion(m.Versions, have.Name, have.version)
	}
	return m.Parts()
}
