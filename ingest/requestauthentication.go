package ingest

import (
	"net/url"

	security "istio.io/api/security/v1beta1"
	clientsec "istio.io/client-go/pkg/apis/security/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func requestAuthenticationKind() Kind {
	k := custom(Kind{Name: value.KindRequestAuthentication, Plural: "requestauthentications",
		Versions: []string{"v1", "v1beta1"}},
		func(o *clientsec.RequestAuthentication) Message { return &o.Spec }, checkRequestAuthentication)
	k.Loss = "tokens are not checked, whatever objects of this kind say"
	k.put = (*joiner).putRequestAuthentication
	return valued(k, (*joiner).requestAuthentication)
}

// requestAuthentication makes the value of a RequestAuthentication with the keys that were fetched. Without keys no
// token of an issuer is valid.
func (j *joiner) requestAuthentication(key value.ObjectKey,
	o *clientsec.RequestAuthentication) *value.RequestAuthentication {
	out := istio.Authentication(&o.Spec)
	out.Meta = metaOf(key, o.ObjectMeta)
	j.unservedTargets(key, istio.References(o.Spec.GetTargetRef(), o.Spec.GetTargetRefs()))
	for i, r := range o.Spec.GetJwtRules() {
		if r.GetJwks() != "" {
			continue
		}
		keys, tried := j.keys.found[keyPlace(r)]
		out.Rules[i].Keys = keys.Set
		at := item("spec.jwtRules", i) + ".jwksUri"
		switch {
		case keyPlace(r) == (KeyPlace{}):
			j.unresolved.add(key, at, "there is neither jwks nor jwksUri, and the issuer is no URL that would say where"+
				" its keys are: no token of it is valid")
		case !tried:
			j.unresolved.add(key, at, "the keys are not fetched yet: no token of this issuer is valid")
		case keys.Problem != "" && keys.Set == "":
			j.unresolved.add(key, at, keys.Problem+": no token of this issuer is valid")
		case keys.Problem != "":
			j.unresolved.add(key, at, keys.Problem+": the keys that were fetched last stay in force")
		}
	}
	return out
}

// keyPlace returns where the keys of a rule are published; the zero KeyPlace if the rule contains its keys, or names no
// place.
func keyPlace(r *security.JWTRule) KeyPlace {
	switch {
	case r.GetJwks() != "":
	case r.GetJwksUri() != "":
		return KeyPlace{URI: r.GetJwksUri()}
	case isWebURL(r.GetIssuer()):
		return KeyPlace{Issuer: r.GetIssuer()}
	}
	return KeyPlace{}
}

// isWebURL reports whether text is an HTTP or HTTPS URL.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
