package nullserver

import (
	"github.com/pilotd/pilotd/loadtest/null"
	"github.com/pilotd/pilotd/shard/grpcstream"
)

// Server is a null server.
type Server = null.Server

// New makes a server that answers the first request for each type in opening with its bytes.
func New(opening map[string][]byte) *Server {
	return null.New(opening, grpcstream.ServerOptions(grpcstream.Limits{}, nil)...)
}
