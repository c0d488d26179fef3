package plan

import (
	"runtime"

	"github.com/pilotd/pilotd/classes"
	"github.com/pilotd/pilotd/gen/plan/outbound"
	"github.com/pilotd/pilotd/snapshot/chunked"
	"github.com/pilotd/pilotd/xdstype"
)

// ahead is how many bases are prefetched at once: what they read must stay in the second-level cache until it is used.
const ahead = 32

// sample is how many classes of a base are prefetched: a base of many has what they share in the cache anyway.
const sample = 2

// prefetch reads what bringing each of bases, which are ahead at most, to a change of virtual hosts is about to read: a
// level of all of them, then the next. A base and its class are some forty cache lines all over the memory, which no
// cache has any more when there are 10,000 of them; one base after the other, the processor would wait for one line at
// a time. key is one of the hosts that differ.
func prefetch(bases []*baseState, key string) {
	read := 0
	for _, bs := range bases {
		read += len(bs.classes)
	}
	for _, bs := range bases {
		read += len(bs.base.hosts) + len(bs.base.parts)
		for _, cs := range bs.sample() {
			read += cs.members
		}
	}
	var hostsOf [ahead]outbound.VirtualHosts
	var routesOf [ahead]classes.Section
	hosts, routes := hostsOf[:0], routesOf[:0]
	for _, bs := range bases {
		b := bs.base
		read += len(b.scope.Parts)
		if len(b.hosts) > 0 {
			hosts = append(hosts, b.hosts[0].Hosts())
		}
		routes = append(routes, b.routes)
		for _, cs := range bs.sample() {
			read += len(cs.set.Sections)
		}
	}
	for _, bs := range bases {
		for range bs.base.scope.Imports() {
			read++
			break
		}
		for _, cs := range bs.sample() {
			if cs.set.Sections.Of(xdstype.Cluster) == bs.base.clusters {
				read++
			}
		}
	}
	read += chunked.Prefetch(hosts, key) + chunked.Prefetch(routes, routeName(80))
	runtime.KeepAlive(read)
}

// sample returns the first classes of a base.
func (bs *baseState) sample() []*classState { return bs.classes[:min(len(bs.classes), sample)] }

// anyOf returns one of hosts; none if there is none.
func anyOf(hosts map[string]struct{}) string {
	for h := range hosts {
		return h
	}
	return ""
}
