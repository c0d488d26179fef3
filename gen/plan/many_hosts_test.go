package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestManyHostsEqualScratch is invariant I1 where sections have many chunks: few of a service's
// resources lie in the chunk that an edit changes, and what a namespace or a Sidecar has of its own lies between those
// that it has in common with others. A round costs much, so there are few.
func TestManyHostsEqualScratch(t *testing.T) {
	t.Parallel()
	const rounds, steps = 2, 8
	done, failed := 0, false
	rapid.Check(t, func(t *rapid.T) {
		if done == rounds && !failed {
			return
		}
		failed = true // until the round has come to its end: what fails is tried again
		m := newMesh(t)
		defer m.stop()
		m.populate()
		for kind, ns := range []string{"a", "b", "a", "c"} {
			m.attach(ns, kind%3)
		}
		m.sidecarOf(t, "b", "two")
		m.attachApp("b", "two", 0)
		for range steps {
			if m.batch(t); rapid.IntRange(0, 2).Draw(t, "among many") > 0 {
				m.editMany(t)
			}
			m.checkSome(t)
		}
		m.check(t)
		done, failed = done+1, false
	})
}

// manyHosts is how many services populate makes: enough that their virtual hosts lie in some six chunks.
const manyHosts = 400

// manyKey is a service of populate.
func manyKey(i int) value.ServiceKey {
	ns := []string{"a", "b", "root"}[i%3]
	return value.ServiceKey{Host: fmt.Sprintf("many-%03d.%s.svc.cluster.local", i, ns), Namespace: ns}
}

func manyMeta(i int) value.Meta {
	return value.Meta{Namespace: manyKey(i).Namespace, Name: fmt.Sprint("many-", i), Created: 1}
}

// populate adds many services that all see.
func (m *meshMachine) populate() {
	b := &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{}}
	for i := range manyHosts {
		k := manyKey(i)
		b.Services[k] = &value.Service{ServiceKey: k, Name: fmt.Sprintf("many-%03d", i), Created: 1,
			Export: value.Visibility{Public: true}, Selector: value.Labels{"app": fmt.Sprint("many-", i)},
			Object:    value.ObjectKey{Kind: value.KindService, Namespace: k.Namespace, Name: k.Host},
			Addresses: []string{fmt.Sprintf("10.100.%d.%d", i/256, i%256)},
			Ports:     []*value.Port{{Name: "p80", Number: 80, Protocol: value.HTTP, TargetPort: 80}}}
	}
	merge(m.state.Services, b.Services)
	snapshottest.Apply(m.builder, b)
}

// editMany changes a few of the many: services come, go and change, and so do rules about them.
func (m *meshMachine) editMany(t *rapid.T) {
	b := &snapshottest.Batch{Services: map[value.ServiceKey]*value.Service{},
		VirtualServices:  map[value.ObjectKey]*value.VirtualService{},
		DestinationRules: map[value.ObjectKey]*value.DestinationRule{}}
	for range rapid.IntRange(1, 6).Draw(t, "of many") {
		i := rapid.IntRange(0, manyHosts-1).Draw(t, "one of many")
		k, meta := manyKey(i), manyMeta(i)
		gone := rapid.IntRange(0, 2).Draw(t, "gone") == 0
		switch pick(t, "kind of many", "service", "virtualservice", "virtualservice", "rule") {
		case "service":
			if b.Services[k] = nil; !gone {
				b.Services[k] = randomService(t, k, meta)
			}
		case "virtualservice":
			o := value.ObjectKey{Kind: value.KindVirtualService, Namespace: meta.Namespace, Name: meta.Name}
			if b.VirtualServices[o] = nil; !gone {
				b.VirtualServices[o] = randomVirtualService(t, meta)
				b.VirtualServices[o].Hosts[0] = k.Host
			}
		case "rule":
			o := value.ObjectKey{Kind: value.KindDestinationRule, Namespace: meta.Namespace, Name: meta.Name}
			if b.DestinationRules[o] = nil; !gone {
				b.DestinationRules[o] = randomRule(t, meta)
				b.DestinationRules[o].Host = k.Host
			}
		}
	}
	merge(m.state.Services, b.Services)
	merge(m.state.VirtualServices, b.VirtualServices)
	merge(m.state.DestinationRules, b.DestinationRules)
	snapshottest.Apply(m.builder, b)
}
