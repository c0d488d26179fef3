package sidecar

import (
	"github.com/pilotd/pilotd/loadtest/wire"
	"github.com/pilotd/pilotd/xdstype"
)

// Request is a request of a Client.
type Request struct {
	// Type is the requested type; meaningless in an answer to a response of an unknown type.
	Type xdstype.Type

	message wire.Request
	initial []*Resource // what the client has, in the first request of a stream; encoded when it is sent
}

// Parts encodes the request in three parts. The names may be many and are shared by all clients that ask for the same.
func (r *Request) Parts() (head, names, tail []byte) {
	m := r.message
	for _, have := range r.initial {
		m.Versions = wire.AppendVersion(m.Versions, have.Name, have.version)
	}
	return m.Parts()
}
