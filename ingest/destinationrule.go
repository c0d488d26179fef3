package ingest

import (
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func destinationRuleKind() Kind {
	k := custom(Kind{Name: value.KindDestinationRule, Plural: "destinationrules", Gauge: "pilotd_destination_rules"},
		func(o *clientnet.DestinationRule) Message { return &o.Spec }, checkDestinationRule)
	return valued(k, (*joiner).destinationRule)
}

// destinationRule makes the value of a DestinationRule, with its host qualified.
func (j *joiner) destinationRule(key value.ObjectKey, o *clientnet.DestinationRule) *value.DestinationRule {
	policy := istio.Policy(&o.Spec)
	policy.Host = j.qualify(policy.Host, o.Namespace)
	export := value.NewVisibility(o.Spec.GetExportTo(), defaultExport(j.config.GetDefaultDestinationRuleExportTo(),
		"*"), o.Namespace)
	if o.Spec.GetWorkloadSelector() != nil {
		// A rule for selected workloads holds in its own namespace only, whatever its exportTo says.
		export = value.NewVisibility([]string{"."}, nil, o.Namespace)
	}
	return &value.DestinationRule{
		Meta: metaOf(key, o.ObjectMeta), DestinationPolicy: policy, Export: export,
		From: []value.ObjectKey{key},
	}
}
