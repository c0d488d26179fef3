package ingest

import (
	clientsec "istio.io/client-go/pkg/apis/security/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func requestAuthenticationKind() Kind {
	k := custom(Kind{Name: value.KindRequestAuthentication, Plural: "requestauthentications",
		Versions: []string{"v1", "v1beta1"}},
		func(o *clientsec.RequestAuthentication) Message { return &o.Spec }, checkRequestAuthentication)
	k.Loss = "tokens are not checked, whatever objects of this kind say"
	return valued(k, (*joiner).requestAuthentication)
}

func (j *joiner) requestAuthentication(key value.ObjectKey,
	o *clientsec.RequestAuthentication) *value.RequestAuthentication {
	out := istio.Authentication(&o.Spec)
	out.Meta = metaOf(key, o.ObjectMeta)
	j.unservedTargets(key, istio.References(o.Spec.GetTargetRef(), o.Spec.GetTargetRefs()))
	for i, r := range o.Spec.GetJwtRules() {
		if r.GetJwks() == "" {
			j.unresolved.add(key, item("spec.jwtRules", i)+".jwksUri",
				"keys are not fetched yet: no token of this issuer is valid; jwks is served")
		}
	}
	return out
}
