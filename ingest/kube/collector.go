package kube

import (
	"k8s.io/client-go/tools/cache"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// collector receives what a reflector reads of one kind. It is a cache.ReflectorStore that keeps only the names of
// objects.
type collector struct {
	// Immutable after newCollector.
	kind   kind
	source *Source
	outbox *outbox

	// Owned by the reflector's goroutine. The value says whether the object's last version was refused.
	known map[value.ObjectKey]bool
}

func newCollector(k kind, s *Source) *collector {
	return &collector{kind: k, source: s, outbox: s.outbox, known: map[value.ObjectKey]bool{}}
}

// Transformer makes the reflector reduce each object as it arrives, not when the list is complete.
func (c *collector) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		c.outbox.progressed(c.kind.resource)
		return c.kind.arrive(o, c.source)
	}
}

// Add receives a new object.
func (c *collector) Add(o any) error { return c.put(o) }

// Update receives a new version of an object.
func (c *collector) Update(o any) error { return c.put(o) }

// Delete receives a deletion.
func (c *collector) Delete(o any) error {
	m, err := accessor(o)
	if err != nil {
		return err
	}
	key := c.kind.key(m)
	c.outbox.post(key, c.end(key))
	return nil
}

// Replace receives all objects that exist now, and deletes the known ones that are not among them.
func (c *collector) Replace(objects []any, _ string) error {
	updates := make(map[value.ObjectKey]update, len(objects))
	for _, o := range objects {
		key, l, err := c.take(o)
		if err != nil {
			return err
		}
		if l != (update{}) {
			updates[key] = l
		}
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

// Resync does nothing, because the collector keeps no objects.
func (c *collector) Resync() error { return nil }

// clear deletes all objects.
func (c *collector) clear() {
	updates := map[value.ObjectKey]update{}
	for key := range c.known {
		updates[key] = c.end(key)
	}
	c.outbox.put(updates)
}

func (c *collector) put(o any) error {
	key, l, err := c.take(o)
	if err == nil && l != (update{}) {
		c.outbox.post(key, l)
	}
	return err
}

// take returns the update for a version of an object. The update is empty if there is nothing to tell.
func (c *collector) take(o any) (value.ObjectKey, update, error) {
	a, err := c.kind.arrive(o, c.source)
	if err != nil {
		return value.ObjectKey{}, update{}, err
	}
	if a.others {
		if _, was := c.known[a.key]; was {
			return a.key, c.end(a.key), nil
		}
		return a.key, update{}, nil
	}
	l := update{accept: c.known[a.key], reject: a.bad}
	if a.bad == nil {
		l.event = &ingest.Event{Source: c.kind.source, Key: a.key, Object: a.object}
	}
	c.known[a.key] = a.bad != nil
	return a.key, l, nil
}

// end returns the update that deletes an object.
func (c *collector) end(key value.ObjectKey) update {
	l := update{event: &ingest.Event{Source: c.kind.source, Key: key}, accept: c.known[key]}
	delete(c.known, key)
	return l
}
