package snapshot

import (
	"iter"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// patternIndex finds what a pattern of hosts covers: hosts stand in it backwards, so that those with one end are
// neighbours.
type patternIndex struct {
	services chunked.Map[*value.Service]        // host backwards, namespace
	virtual  chunked.Map[*value.VirtualService] // host or pattern backwards, age
	odd      chunked.Map[*value.VirtualService] // pattern that Patterns does not yield ("*-api.example.com"), age
}

func (x patternIndex) with(d *Delta) patternIndex {
	var services editList[*value.Service]
	var virtual, odd editList[*value.VirtualService]
	for k, c := range d.Services {
		services.set(key(backwards(k.Host), k.Namespace), c.New, c.New == nil)
	}
	put := func(vs *value.VirtualService, del bool) {
		if vs == nil {
			return
		}
		for _, h := range vs.Hosts {
			virtual.set(key(backwards(h), age(vs.Meta)), vs, del)
			if strings.HasPrefix(h, "*") && h != "*" && !strings.HasPrefix(h, "*.") {
				odd.set(key(h, age(vs.Meta)), vs, del)
			}
		}
	}
	for _, c := range Of[*value.VirtualService](d.Objects) {
		put(c.Old, true)
		put(c.New, false)
	}
	return patternIndex{x.services.Apply(services), x.virtual.Apply(virtual), x.odd.Apply(odd)}
}

// backwards returns s with its bytes in the other order.
func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// ending yields the values whose host falls under a pattern, as value.HostMatches has it, in no order that means
// anything.
func ending[V comparable](m chunked.Map[V], pattern string) iter.Seq[V] {
	return func(yield func(V) bool) {
		end, any := strings.CutPrefix(pattern, "*")
		prefix := backwards(end)
		for k, v := range m.From(prefix) {
			if !strings.HasPrefix(k, prefix) {
				return
			}
			host, _, _ := strings.Cut(k, sep)
			if (host == prefix) != any && !yield(v) {
				return
			}
		}
	}
}

// ServicesUnder yields the services whose host falls under a pattern, or is host itself, in no order that means
// anything.
func (s *Snapshot) ServicesUnder(pattern string) iter.Seq[*value.Service] {
	if !strings.HasPrefix(pattern, "*") {
		return s.ServicesOfHost(pattern)
	}
	return ending(s.patterns.services, pattern)
}

// VirtualServicesUnder yields those that have a host or a pattern under a pattern among their hosts; one may come more
// than once.
func (s *Snapshot) VirtualServicesUnder(pattern string) iter.Seq[*value.VirtualService] {
	return ending(s.patterns.virtual, pattern)
}

// VirtualServicesOfOddPatterns yields those with a pattern among their hosts that covers a part of a label, such as
// "*-api.example.com".
func (s *Snapshot) VirtualServicesOfOddPatterns() iter.Seq[*value.VirtualService] {
	return values(s.patterns.odd)
}

// VirtualServices yields all VirtualServices by namespace and name.
func (s *Snapshot) VirtualServices() iter.Seq[*value.VirtualService] {
	return All[*value.VirtualService](s)
}

// VirtualServicesIn yields the VirtualServices of a namespace, by name.
func (s *Snapshot) VirtualServicesIn(namespace string) iter.Seq[*value.VirtualService] {
	return In[*value.VirtualService](s, namespace)
}

// ServicesBeginning yields the services whose host begins with prefix, by host, then namespace.
func (s *Snapshot) ServicesBeginning(prefix string) iter.Seq[*value.Service] {
	return func(yield func(*value.Service) bool) {
		for k, svc := range s.services.byHost.From(prefix) {
			if !strings.HasPrefix(k, prefix) || !yield(svc) {
				return
			}
		}
	}
}
