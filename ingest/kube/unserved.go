package kube

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/support"
	"github.com/pilotd/pilotd/snapshot/value"
)

// unservedKinds are the kinds that pilotd does not serve, by the name of their CRD. Of their objects nothing is kept
// but the names, for the sink to report.
func unservedKinds(s scope) map[string]kind {
	kinds := map[string]kind{}
	for _, k := range support.Kinds() {
		kinds[k.CRD()] = kind{
			name: value.Kind(k.Object()), resource: k.CRD(), inURL: k.Plural, versions: versionsOf(k),
			namespace: s.namespace,
			list:      func() runtime.Object { return &unreadList{} },
			read:      func(any) (any, *ingest.Rejection) { return ingest.NotServed{}, nil },
			need: need{optional: true, excused: true,
				loss: "objects of this kind, which is not served, are not reported"},
		}
	}
	return kinds
}

func versionsOf(k support.Kind) (out []schema.GroupVersion) {
	for _, v := range k.Versions {
		out = append(out, schema.GroupVersion{Group: k.Group, Version: v})
	}
	return out
}
