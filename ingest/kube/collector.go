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
	outbox *outbox

	// Owned by the reflector's goroutine. The value says whether the last version was refused.
	known map[value.ObjectKey]bool
}

func newCollector(k kind, o *outbox) *collector {
	return &collector{kind: k, outbox: o, known: map[value.ObjectKey]bool{}}
}

// Transformer makes the reflector cut objects down as they arrive, not when the list is complete.
func (c *collector) Transformer() cache.TransformFunc {
	return func(o any) (any, error) { return c.kind.arrive(o) }
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
	letters := map[value.ObjectKey]letter{}
	c.end(c.kind.key(m), letters)
	c.outbox.put(letters)
	return nil
}

// Replace takes all objects that there are now; others that were known are gone.
func (c *collector) Replace(objects []any, _ string) error {
	letters := make(map[value.ObjectKey]letter, len(objects))
	for _, o := range objects {
		if err := c.take(o, letters); err != nil {
			return err
		}
	}
	for key := range c.known {
		if _, ok := letters[key]; !ok {
			c.end(key, letters)
		}
	}
	c.outbox.put(letters)
	c.outbox.arrived(c.kind.resource)
	return nil
}

// Resync does nothing: nothing is cached that could be told again.
func (c *collector) Resync() error { return nil }

// clear ends all objects.
func (c *collector) clear() {
	letters := map[value.ObjectKey]letter{}
	for key := range c.known {
		c.end(key, letters)
	}
	c.outbox.put(letters)
}

func (c *collector) put(o any) error {
	letters := make(map[value.ObjectKey]letter, 1)
	if err := c.take(o, letters); err != nil {
		return err
	}
	c.outbox.put(letters)
	return nil
}

// take writes the letter for a version of an object.
func (c *collector) take(o any, letters map[value.ObjectKey]letter) error {
	a, err := c.kind.arrive(o)
	if err != nil {
		return err
	}
	l := letter{accept: c.known[a.key], reject: a.bad}
	if a.bad == nil {
		l.event = &ingest.Event{Source: SourceName, Key: a.key, Object: a.object}
	}
	c.known[a.key] = a.bad != nil
	letters[a.key] = l
	return nil
}

// end writes the letter for the end of an object.
func (c *collector) end(key value.ObjectKey, letters map[value.ObjectKey]letter) {
	letters[key] = letter{event: &ingest.Event{Source: SourceName, Key: key}, accept: c.known[key]}
	delete(c.known, key)
}
