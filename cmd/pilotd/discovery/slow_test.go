package discovery

import (
	"slices"

	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// mayAsk returns what the client says now: all of it, or nothing while it is slow.
func (c *client) mayAsk(requests []ads.Request) []ads.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.slow {
		return requests
	}
	c.outbox = append(c.outbox, requests...)
	return nil
}

// warm holds the ACK of clusters back while one of them has no endpoints; the caller holds mu.
func (c *client) warm(requests []ads.Request) []ads.Request {
	if !c.warms {
		return requests
	}
	if r := requests[0]; r.TypeURL == xdstype.ClusterURL {
		c.warming, requests = &r, requests[1:]
	}
	isWarming := func(name string) bool { return c.lastCDS[name] }
	if c.warming != nil && !slices.ContainsFunc(c.asked[xdstype.EndpointURL], isWarming) {
		requests = append(requests, *c.warming)
		c.warming = nil
	}
	return requests
}

// stall has the client read, and say nothing until it is let.
func (c *client) stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = true
}

// watch has f called after each response, before it is answered.
func (c *client) watch(f func(url string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watcher = f
}

func (c *client) tellWatcher() {
	c.mu.Lock()
	f, n := c.watcher, len(c.got)
	var url string
	if n > 0 {
		url = c.got[n-1].url
	}
	c.mu.Unlock()
	if f != nil {
		f(url)
	}
}

func (c *client) isSlow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slow
}

// let has a slow client say the oldest thing that it has to say about a type; false is that there is nothing.
func (c *client) let(typeURL string) bool {
	c.mu.Lock()
	i := slices.IndexFunc(c.outbox, func(r ads.Request) bool { return r.TypeURL == typeURL })
	if i < 0 {
		c.mu.Unlock()
		return false
	}
	r := c.outbox[i]
	c.outbox = slices.Delete(c.outbox, i, i+1)
	c.mu.Unlock()
	c.ask(r)
	return true
}

// resume has the client say all that waits, and answer at once from now on.
func (c *client) resume() {
	for {
		c.mu.Lock()
		if len(c.outbox) == 0 {
			c.slow = false
			c.mu.Unlock()
			return
		}
		r := c.outbox[0]
		c.outbox = c.outbox[1:]
		c.mu.Unlock()
		c.ask(r)
	}
}

// responses returns those that came after the first n.
func (c *client) responses(n int) []response {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got[n:])
}

// count returns the number of responses so far.
func (c *client) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}
