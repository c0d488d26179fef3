package outbound

import (
	"fmt"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/gen/check"
	"github.com/pilotd/pilotd/gen/plan/checked"
	"github.com/pilotd/pilotd/snapshot/value"
)

// MaxClusters bounds the clusters of one service for one kind of client. Its ports multiply with the subsets of its
// DestinationRule, and the two objects may belong to different people: so the bound cannot be held at the door.
const MaxClusters = 1 << 14

// crowdKey is a service and a DestinationRule that would make more clusters than that.
type crowdKey struct {
	service *value.Service
	rule    *value.DestinationRule
}

// Objects implements value.Origin: the rule is accused, for the service is served.
func (k crowdKey) Objects() []value.ObjectKey {
	return append(k.rule.Objects(), k.service.Objects()...)
}

// Part implements value.Origin.
func (k crowdKey) Part() string { return k.service.Host }

// crowd is what stands for such a pair; it holds nothing.
type crowd struct{ _ byte }

func newCrowds(f *checked.Faults) checked.Table[crowdKey, crowd] {
	return checked.New(f, "subsets of", func(k crowdKey) ([]byte, []gen.Fault) {
		return nil, []gen.Fault{{Of: k.rule.Objects(), Fault: check.Fault{Path: "spec.subsets", Reason: fmt.Sprintf(
			"expected at most %d clusters of a service, got %d ports times %d subsets: the service is served without its subsets",
			MaxClusters, len(k.service.Ports), len(k.rule.Subsets))}}}
	}, func(crowdKey, []byte) *crowd { return new(crowd) })
}

// subsetsOf returns the subsets of a service that have clusters: all, or none where they would be too many.
func (t *Tables) subsetsOf(o *upstream) []*value.Subset {
	if o.rule == nil {
		return nil
	}
	subsets := o.rule.Subsets
	if len(o.service.Ports)*(1+len(subsets)) > MaxClusters {
		t.Clusters.crowds.Get(crowdKey{o.service, o.rule})
		return nil
	}
	return subsets
}
