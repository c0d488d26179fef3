package ingest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
	clientsec "istio.io/client-go/pkg/apis/security/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func peerAuthenticationKind() Kind {
	k := custom(Kind{Name: value.KindPeerAuthentication, Plural: "peerauthentications",
		Versions: []string{"v1", "v1beta1"}},
		func(o *clientsec.PeerAuthentication) Message { return &o.Spec }, checkPeerAuthentication)
	k.Loss = "ports accept plain text and mutual TLS, whatever objects of this kind say"
	return valued(k, (*joiner).peerAuthentication)
}

// peerAuthentication makes the value of a PeerAuthentication. It reports a policy for selected workloads in the root
// namespace, which has no effect.
func (j *joiner) peerAuthentication(key value.ObjectKey,
	o *clientsec.PeerAuthentication) *value.PeerAuthentication {
	out := &value.PeerAuthentication{Meta: metaOf(key, o.ObjectMeta), Mode: mtlsMode(o.Spec.GetMtls())}
	out.Labels = maps.Clone(o.Spec.GetSelector().GetMatchLabels())
	for port, m := range o.Spec.GetPortLevelMtls() {
		if out.Ports == nil {
			out.Ports = map[uint32]*value.MTLSMode{}
		}
		out.Ports[port] = mtlsMode(m)
	}
	if len(out.Labels) > 0 && o.Namespace == j.mesh.RootNamespace {
		j.unresolved.add(key, "spec.selector",
			"selects nothing: in the root namespace only a policy without a selector counts")
	}
	return out
}

// mtlsMode returns the mode that m sets, or nil if m leaves it to the policy of the next wider scope.
func mtlsMode(m *security.PeerAuthentication_MutualTLS) *value.MTLSMode {
	var mode value.MTLSMode
	switch m.GetMode() {
	case security.PeerAuthentication_MutualTLS_DISABLE:
		mode = value.Disabled
	case security.PeerAuthentication_MutualTLS_PERMISSIVE:
		mode = value.Permissive
	case security.PeerAuthentication_MutualTLS_STRICT:
		mode = value.Strict
	default:
		return nil
	}
	return &mode
}

func checkPeerAuthentication(o *clientsec.PeerAuthentication) *problem {
	c, spec := &check{}, &o.Spec
	c.policySelector("spec.selector.matchLabels", spec.GetSelector().GetMatchLabels())
	mode := func(at string, m *security.PeerAuthentication_MutualTLS) {
		_, known := security.PeerAuthentication_MutualTLS_Mode_name[int32(m.GetMode())]
		c.that(known, at+".mode", "expected UNSET, DISABLE, PERMISSIVE or STRICT, got %d", m.GetMode())
	}
	mode("spec.mtls", spec.GetMtls())
	c.that(spec.PortLevelMtls == nil || len(spec.PortLevelMtls) > 0, "spec.portLevelMtls",
		"expected at least one port")
	c.that(len(spec.PortLevelMtls) == 0 || len(spec.GetSelector().GetMatchLabels()) > 0, "spec.portLevelMtls",
		"expected a selector: ports are those of certain workloads")
	for _, port := range slices.Sorted(maps.Keys(spec.PortLevelMtls)) {
		at := member("spec.portLevelMtls", strconv.Itoa(int(port)))
		c.port(at, port)
		mode(at, spec.PortLevelMtls[port])
	}
	return c.first
}

// policySelector checks the selector of a security policy.
func (c *check) policySelector(field string, l map[string]string) {
	c.labels(field, l)
	const longest = 63
	for _, k := range slices.Sorted(maps.Keys(l)) {
		c.that(!strings.Contains(k, "*"), member(field, k), "expected a label, wildcards select nothing here")
		c.that(len(l[k]) <= longest, member(field, k), "expected a label's value of at most %d characters, got %d",
			longest, len(l[k]))
	}
}
