package grpcstream

import (
	"container/list"
	"sync"
)

// Connections without streams are those whose clients have just connected, were refused, or ask for certificates now
// and then. There may be as many as a share of those with streams, so that of thousands that connect at once none is
// closed before it has had the time to open its stream.
const (
	idleShare          = 4
	minIdleConnections = 1024
)

// maxIdleConnections returns how many connections without streams there may be.
func (l *Limits) maxIdleConnections() int {
	most := l.Streams
	if l.Connections > 0 {
		most = min(most, l.Connections)
	}
	return max(most/idleShare, minIdleConnections)
}

// idleConnections are the connections without streams. When there are too many, the one that has had none for the
// longest time is closed. A connection that its client has closed stays here until it is the oldest: grpc does not tell
// of that.
type idleConnections struct {
	// Immutable after newIdleConnections.
	most int

	mu sync.Mutex
	// Guarded by mu.
	order  *list.List // of *connection, the oldest first
	places map[*connection]*list.Element
}

func newIdleConnections(most int) *idleConnections {
	return &idleConnections{most: most, order: list.New(), places: map[*connection]*list.Element{}}
}

// add notes that c has no stream.
func (i *idleConnections) add(c *connection) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.streams.Load() > 0 || i.places[c] != nil { // another stream of it began or ended at the same moment
		return
	}
	i.places[c] = i.order.PushBack(c)
	if i.order.Len() > i.most {
		oldest := i.order.Front().Value.(*connection)
		i.leave(oldest)
		oldest.conn.Close()
	}
}

// remove notes that c has a stream, or has ended.
func (i *idleConnections) remove(c *connection) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.leave(c)
}

// leave takes c out. The caller holds mu.
func (i *idleConnections) leave(c *connection) {
	if e := i.places[c]; e != nil {
		i.order.Remove(e)
		delete(i.places, c)
	}
}
