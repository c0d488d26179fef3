package ingest

import (
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func destinationRuleKind() Kind {
	k := custom(Kind{Name: value.KindDestinationRule, Plural: "destinationrules", Gauge: "pilotd_destination_rules"},
		func(o *clientnet.DestinationRule) Message { return &o.Spec }, checkDestinationRule)
	return valued(k, (*joiner).destinationRule)
}

// destinationRule qualifies the host.
func (j *joiner) destinationRule(key value.ObjectKey, o *clientnet.DestinationRule) *value.DestinationRule {
	spec := clone(&o.Spec)
	spec.Host = j.qualify(spec.GetHost(), o.Namespace)
	export := value.NewVisibility(spec.GetExportTo(), defaultExport(j.mesh.Config.GetDefaultDestinationRuleExportTo(),
		"*"), o.Namespace)
	if spec.GetWorkloadSelector() != nil {
		// Whatever it says: it is for workloads of its own namespace.
		export = value.NewVisibility([]string{"."}, nil, o.Namespace)
	}
	return &value.DestinationRule{
		Meta: metaOf(key, o.ObjectMeta), Spec: spec, Export: export,
		From: []value.ObjectKey{key},
	}
}
