package inbound

import (
	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// listener is an inbound listener: its header with the chains of ports that nobody declares, which workloads share, and
// those of the workload's own ports. It is one workload's, so that it holds no bytes but their names: they are put
// together when it is sent.
type listener struct {
	header *encodecache.Fragment
	fixed  []*encodecache.Fragment
	ports  []port
}

// entry returns the listener as a resource.
func (c *listener) entry(name string) *encodecache.Entry {
	size := 0
	for _, f := range c.fixed {
		size += len(f.Bytes())
	}
	// The header is left out, or there is no chain.
	if len(c.header.Bytes()) == 0 || len(c.ports) == 0 && size == 0 {
		return encodecache.NewAbsent(xdstype.ListenerURL, name)
	}
	size += len(c.header.Bytes())
	version := encodecache.Join(func(yield func(encodecache.Sum) bool) {
		_ = yield(c.header.Sum())
		for _, f := range c.fixed {
			_ = yield(f.Sum())
		}
		for i := range c.ports {
			texts := c.ports[i].names.Texts()
			size += c.ports[i].chains.Len(texts)
			_ = yield(c.ports[i].chains.Sum(texts))
		}
	})
	return encodecache.NewEntry(xdstype.ListenerURL, name,
		encodecache.Content{Version: version, Size: size, Parts: c.fragments})
}

// fragments yields what the listener is made of.
func (c *listener) fragments(yield func(*encodecache.Fragment) bool) {
	if !yield(c.header) {
		return
	}
	for _, f := range c.fixed {
		if !yield(f) {
			return
		}
	}
	for i := range c.ports {
		if !yield(c.ports[i].chains.Fill(c.ports[i].names.Texts(), &c.ports[i])) {
			return
		}
	}
}
