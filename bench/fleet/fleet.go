package fleet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/loadtest/wire"
)

// Subscription is what a client subscribes to of one type.
type Subscription struct {
	TypeURL string
	// Names are the resources; none means all.
	Names []string
}

// Options describe the clients.
type Options struct {
	// Clients is the number of clients.
	Clients int
	// Dial connects one client.
	Dial func() (net.Conn, error)
	// Delta selects the incremental variant of xDS.
	Delta bool
	// Node is the node of client i.
	Node func(i int) *corev3.Node
	// Subscriptions are sent one after the other, each when the one before is answered.
	Subscriptions []Subscription
}

// Fleet runs clients.
type Fleet struct {
	// Immutable after Start.
	clients []*client
	buffers *wire.Buffers

	running sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	responses, bytes int
	want             int           // the count that Await waits for
	reached          chan struct{} // closed when it is reached
	at               time.Time     // when reached was closed
	err              error         // the first one
	closed           bool
}

// Start starts to connect all clients, without waiting for answers.
func Start(o Options) (*Fleet, error) {
	f := &Fleet{buffers: wire.NewBuffers()}
	subs := make([]encodedSubscription, len(o.Subscriptions))
	for i, s := range o.Subscriptions {
		subs[i] = encode(s)
	}
	for i := range o.Clients {
		node, err := proto.Marshal(o.Node(i))
		if err != nil {
			f.Close()
			return nil, err
		}
		conn, err := o.Dial()
		if err != nil {
			f.Close()
			return nil, err
		}
		c := newClient(f, conn, subs, o.Delta)
		f.clients = append(f.clients, c)
		f.running.Go(func() { f.ended(i, c.run(node)) })
	}
	return f, nil
}

// received counts one response of n bytes.
func (f *Fleet) received(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.responses++
	f.bytes += n
	f.tell()
}

func (f *Fleet) ended(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && !f.closed {
		f.err = fmt.Errorf("client %d: %w", i, err)
	}
	f.tell()
}

// tell wakes Await if its count is reached. The caller holds mu.
func (f *Fleet) tell() {
	if f.reached != nil && (f.responses >= f.want || f.err != nil) {
		close(f.reached)
		f.reached, f.at = nil, time.Now()
	}
}

// Responses returns the number of responses that all clients have received, and their bytes.
func (f *Fleet) Responses() (n, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.responses, f.bytes
}

// Await returns when the clients have received n responses in all since Start, or one of them has ended. It returns
// when that was.
func (f *Fleet) Await(ctx context.Context, n int) (time.Time, error) {
	f.mu.Lock()
	reached := make(chan struct{})
	f.want, f.reached = n, reached
	f.tell()
	f.mu.Unlock()
	select {
	case <-reached:
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.err
}

// Close ends all clients.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	for _, c := range f.clients {
		c.conn.Close()
	}
	f.running.Wait()
}
