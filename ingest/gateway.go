package ingest

import (
	"strings"

	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// gateway makes every server host "namespace/host".
func (w *world) gateway(o *clientnet.Gateway) *value.Gateway {
	spec := clone(&o.Spec)
	for _, s := range spec.Servers {
		s.Bind = addressOf(s.Bind)
		for i, h := range s.Hosts {
			s.Hosts[i] = inNamespace(h, o.Namespace)
		}
	}
	return &value.Gateway{Meta: metaOf(o.ObjectMeta), Spec: spec}
}

// inNamespace is "namespace/host" with "." resolved; of a host alone, any namespace's.
func inNamespace(host, own string) string {
	ns, name, ok := strings.Cut(host, "/")
	if !ok {
		ns, name = "*", host
	}
	if ns == "." {
		ns = own
	}
	return ns + "/" + strings.ToLower(name)
}

// sidecar makes every egress host lower case. What "." stands for is the client's namespace, which is another one for the root namespace's.
func (w *world) sidecar(o *clientnet.Sidecar) *value.Sidecar {
	spec := clone(&o.Spec)
	for _, l := range spec.Ingress {
		l.Bind = addressOf(l.Bind)
	}
	for _, e := range spec.Egress {
		e.Bind = addressOf(e.Bind)
		for i, h := range e.Hosts {
			ns, name, _ := strings.Cut(h, "/")
			e.Hosts[i] = ns + "/" + strings.ToLower(name)
		}
	}
	return &value.Sidecar{Meta: metaOf(o.ObjectMeta), Spec: spec}
}
