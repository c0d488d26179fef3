package null

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/loadtest/mesh"
	"github.com/pilotd/pilotd/loadtest/sidecar"
)

// Recording is what a server sent to one client.
type Recording struct {
	// Opening has the first response of each type, by type URL.
	Opening map[string][]byte `json:"opening"`
	// Endpoint and Route are the responses to a change with number Mark.
	Endpoint []byte `json:"endpoint"`
	Route    []byte `json:"route"`
	Mark     int    `json:"mark"`
}

// Edits makes the changes that are recorded.
type Edits interface {
	Endpoint(service, n int) (time.Time, error)
	Route(n int) (time.Time, error)
	Restore() error
}

// recorder collects the responses of one client.
type recorder struct {
	mu sync.Mutex
	// Guarded by mu.
	stream []byte // bytes that are not split into messages yet
	seen   [][]byte

	// Immutable.
	ready  chan struct{}
	marked chan struct{}
}

// Record connects one client, the sidecar of o, to a server, and records what it receives after connecting and after
// one change of each kind. It fails if the server sends more than one response of a type after connecting.
func Record(ctx context.Context, o sidecar.Options, edits Edits) (*Recording, error) {
	const mark = 1
	r := &recorder{ready: make(chan struct{}), marked: make(chan struct{}, 2)}
	ended := make(chan error, 1)
	o.Clients, o.Raw = 1, func(_ int, b []byte) { r.add(b) }
	o.Ended = func(_ int, err error) { ended <- err }
	o.Observe = func(_ int, _ time.Time, receipt *sidecar.Receipt) {
		if receipt.Ready {
			close(r.ready)
		}
		if len(receipt.Marks) > 0 {
			r.marked <- struct{}{}
		}
	}
	wait := func(done <-chan struct{}) error {
		select {
		case <-done:
			return nil
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f, err := sidecar.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := wait(r.ready); err != nil {
		return nil, fmt.Errorf("recording what comes at first: %w", err)
	}
	out := &Recording{Mark: mark}
	if out.Opening, err = opening(r.take()); err != nil {
		return nil, err
	}
	change := func(err error) ([]byte, error) {
		if err == nil {
			err = wait(r.marked)
		}
		if err != nil {
			return nil, fmt.Errorf("recording a change: %w", err)
		}
		all := r.take()
		return all[len(all)-1], nil
	}
	_, err = edits.Endpoint(0, mark)
	if out.Endpoint, err = change(err); err != nil {
		return nil, errors.Join(err, edits.Restore())
	}
	_, err = edits.Route(mark)
	if out.Route, err = change(err); err != nil {
		return nil, errors.Join(err, edits.Restore())
	}
	return out, edits.Restore()
}

// add appends bytes of the stream and splits off messages.
func (r *recorder) add(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stream = append(r.stream, b...)
	for len(r.stream) >= 5 {
		end := 5 + int(binary.BigEndian.Uint32(r.stream[1:]))
		if len(r.stream) < end {
			return
		}
		r.seen = append(r.seen, bytes.Clone(r.stream[5:end]))
		r.stream = r.stream[end:]
	}
}

// take returns the messages since the last take.
func (r *recorder) take() (out [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, r.seen = r.seen, nil
	return out
}

func opening(messages [][]byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, m := range messages {
		url, err := typeURL(m)
		if err != nil {
			return nil, err
		}
		if out[url] != nil {
			return nil, fmt.Errorf("the server sends %s more than once at first", url)
		}
		out[url] = m
	}
	return out, nil
}

// typeURL returns the type URL of a response, which is in field 4 in both variants of xDS.
func typeURL(b []byte) (string, error) {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", protowire.ParseError(n)
		}
		m := protowire.ConsumeFieldValue(num, kind, b[n:])
		if m < 0 {
			return "", protowire.ParseError(m)
		}
		if num == 4 && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b[n:])
			return string(v), nil
		}
		b = b[n+m:]
	}
	return "", errors.New("a response without a type")
}

// endpoint and route return the responses to change n.
func (r *Recording) endpoint(n int) []byte {
	return bytes.ReplaceAll(r.Endpoint, []byte(mesh.Address(r.Mark)), []byte(mesh.Address(n)))
}

func (r *Recording) route(n int) []byte {
	return bytes.ReplaceAll(r.Route, []byte(mesh.Path(r.Mark)), []byte(mesh.Path(n)))
}
