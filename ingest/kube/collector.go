package kube

import (
	"k8s.io/client-go/tools/cache"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// collector takes what a reflector reads of one kind. It is a cache.ReflectorStore that keeps names alone.
type collector struct {
	// Immutable after newCollector.
	kind   kind
	source *Source
	outbox *outbox

	// Owned by the reflector's goroutine. The value says whether the last version was refused.
	known map[value.ObjectKey]bool
}

func newCollector(k kind, s *Source) *collector {
	return &collector{kind: k, source: s, outbox: s.outbox, known: map[value.ObjectKey]bool{}}
}

// Transformer makes the reflector cut objects down as they arrive, not when the list is complete.
func (c *collector) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		c.outbox.progressed(c.kind.resource)
		return c.kind.arrive(o, c.source)
	}
}

// Add takes a new object.
func (c *collector) Add(o any) error { return c.put(o) }

// Update takes another version of an object.
func (c *collector) Update(o any) error { return c.put(o) }

// Delete takes the end of an object.
func (c *collector) Delete(o any) error {
	m, err := accessor(o)
	if err != nil {
		return err
	}
	key := c.kind.key(m)
	c.outbox.post(key, c.end(key))
	return nil
}

// Replace takes all objects that there are now; others that were known are gone.
func (c *collector) Replace(objects []any, _ string) error {
	updates := make(map[value.ObjectKey]update, len(objects))
	for _, o := range objects {
		key, l, err := c.take(o)
		if err != nil {
			return err
		}
		updates[key] = l
	}
	for key := range c.known {
		if _, ok := updates[key]; !ok {
			updates[key] = c.end(key)
		}
	}
	c.outbox.put(updates)
	c.outbox.arrived(c.kind.resource)
	return nil
}

// Resync does nothing: nothing is cached that could be told again.
func (c *collector) Resync() error { return nil }

// clear ends all objects.
func (c *collector) clear() {
	updates := map[value.ObjectKey]update{}
	for key := range c.known {
		updates[key] = c.end(key)
	}
	c.outbox.put(updates)
}

func (c *collector) put(o any) error {
	key, l, err := c.take(o)
	if err == nil {
		c.outbox.post(key, l)
	}
	return err
}

// take writes the update for a version of an object.
func (c *collector) take(o any) (value.ObjectKey, update, error) {
	a, err := c.kind.arrive(o, c.source)
	if err != nil {
		return value.ObjectKey{}, update{}, err
	}
	l := update{accept: c.known[a.key], reject: a.bad}
	if a.bad == nil {
		l.event = &ingest.Event{Source: c.kind.source, Key: a.key, Object: a.object}
	}
	c.known[a.key] = a.bad != nil
	return a.key, l, nil
}

// end writes the update for the end of an object.
func (c *collector) end(key value.ObjectKey) update {
	l := update{event: &ingest.Event{Source: c.kind.source, Key: key}, accept: c.known[key]}
	delete(c.known, key)
	return l
}
