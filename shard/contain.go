package shard

import (
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/proxy"
)

// Fault is a panic that was caught. What it was about is left out; everything else goes on.
type Fault struct {
	// Proxy is the proxy whose stream ended because of it; nil when no stream did.
	Proxy *proxy.Proxy
	// Doing says what pilotd was doing.
	Doing string
	// Value is the value of the panic, Stack where it happened.
	Value string
	Stack []byte
}

// contain runs f and reports whether it returned. A panic in f is reported, and has no other effect.
func (o *Options) contain(doing string, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			o.fault(nil, doing, v)
		}
	}()
	o.sabotage(doing, 0)
	f()
	return true
}

// guard runs f, which handles one stream. A panic in it ends that stream, and no other.
func (w *worker) guard(m *client, doing string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			w.shards.opts.fault(m, doing, v)
			w.quarantine(m)
		}
	}()
	w.shards.opts.sabotage(doing, m.id)
	f()
}

// fault reports a panic, with the stack of the goroutine that is recovering from it.
func (o *Options) fault(m *client, doing string, v any) {
	f := Fault{Doing: doing, Value: fmt.Sprint(v), Stack: debug.Stack()}
	if m != nil {
		f.Proxy = m.proxy
	}
	o.Metrics.Panicked(f)
}

// quarantine ends the stream of a client whose state may be half changed, and takes it out of all that the worker has.
// What the worker worked out in this pass is forgotten: it may be half done, too.
func (w *worker) quarantine(m *client) {
	m.gone = true
	m.stream.Close(status.Error(codes.Internal, "a fault of the server: connect again"))
	w.drop(m)
	select { // the reader must not wait for a request that nobody handles any more
	case <-m.room:
	default:
	}
	w.differ.Turn()
	w.differ.Forget()
}
