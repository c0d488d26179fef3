package grpcstream

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// partingTime is how long a connection stays open whose streams were ended for its client to connect anew, so that the
// client is told before it sees the connection end.
const partingTime = time.Second

func errElsewhere() error {
	return status.Error(codes.Unavailable, "this replica serves more than its share: connect again")
}

// Newest returns the number of the stream that was opened last.
func (s *Server) Newest() uint64 { return s.lastID.Load() }

// SendAway asks one client, by chance, to connect again: the streams of its connection end, and then the connection, so
// that it is balanced anew. Streams behind the one of number newest stay. It reports whether there was one.
func (s *Server) SendAway(newest uint64) bool {
	var chosen *stream
	candidates := 0
	s.streams.Range(func(id uint64, st *stream) bool {
		if c := connectionOf(st.grpc.Context()); id <= newest && (c == nil || !c.parting.Load()) {
			candidates++
			chance := rand.IntN(candidates) // #nosec G404 -- whom chance picks is no secret
			if chance == 0 {
				chosen = st
			}
		}
		return true
	})
	if chosen == nil {
		return false
	}
	s.stats.away.Add(1)
	c := connectionOf(chosen.grpc.Context())
	if c == nil || !c.parting.CompareAndSwap(false, true) {
		chosen.Close(errElsewhere())
		return true
	}
	s.streams.Range(func(_ uint64, st *stream) bool {
		if connectionOf(st.grpc.Context()) == c {
			st.Close(errElsewhere())
		}
		return true
	})
	if s.options.AfterFunc != nil {
		s.options.AfterFunc(partingTime, func() { c.conn.Close() })
	} else {
		c.conn.Close()
	}
	return true
}
