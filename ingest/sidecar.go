package ingest

import (
	"strings"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func sidecarKind() Kind {
	k := custom(Kind{Name: value.KindSidecar, Plural: "sidecars"},
		func(o *clientnet.Sidecar) Message { return &o.Spec }, checkSidecar)
	return valued(k, (*joiner).sidecar)
}

// sidecar makes the value of a Sidecar with egress hosts in lower case. It keeps ".", because that means the client's
// namespace, which may differ from the namespace of a Sidecar in the root namespace.
func (j *joiner) sidecar(key value.ObjectKey, o *clientnet.Sidecar) *value.Sidecar {
	spec := clone(&o.Spec)
	for _, l := range spec.Ingress {
		l.Bind = addressOf(l.Bind)
		if l.Tls != nil {
			l.Tls.CipherSuites = cipherSuites(l.Tls.CipherSuites)
		}
	}
	for _, e := range spec.Egress {
		e.Bind = addressOf(e.Bind)
		for i, h := range e.Hosts {
			ns, name, _ := strings.Cut(h, "/")
			e.Hosts[i] = ns + "/" + strings.ToLower(name)
		}
	}
	return &value.Sidecar{Meta: metaOf(key, o.ObjectMeta), SidecarSettings: istio.Sidecar(spec)}
}
