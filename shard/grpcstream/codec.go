package grpcstream

import (
	"slices"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/pilotd/pilotd/encodecache"
)

// codec sends responses without copying them and scans requests. It leaves every other message to the standard codec.
type codec struct {
	encoding.CodecV2 // the standard one
	// scratch has *[]byte for requests that grpc read in parts. grpc's own pool clears what it gives: a megabyte for
	// more than 32 KiB.
	scratch *sync.Pool
}

func newCodec() codec {
	return codec{encoding.GetCodecV2(proto.Name), &sync.Pool{New: func() any { return new([]byte) }}}
}

// Marshal gives grpc the bytes of v.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*message); ok {
		return m.response.Tracked(m), nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal reads v from data. It never fails for a request: the stream's reader reports what is wrong, with a better
// code than grpc would.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if len(data) == 1 {
		in.request, in.err = in.scan(data[0].ReadOnlyData())
		return nil
	}
	b := c.scratch.Get().(*[]byte)
	defer c.scratch.Put(b)
	*b = slices.Grow((*b)[:0], data.Len())[:data.Len()]
	data.CopyTo(*b)
	in.request, in.err = in.scan(*b)
	return nil
}

// message is one response on its way through one stream. It is the pool that grpc returns the last of its buffers to,
// which is how the stream learns that it is written.
type message struct {
	mem.NopBufferPool
	// Immutable.
	response *encodecache.Response
	stream   *stream
}

// headerLen is what grpc puts before each message.
const headerLen = 5

func (m *message) len() int64 { return int64(m.response.Len() + headerLen) }

// Put is called by grpc when it has written or discarded the last byte of the response, from a goroutine of its own or
// within SendMsg.
func (m *message) Put(*[]byte) { m.stream.written(m.len()) }
