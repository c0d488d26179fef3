package ingest

import (
	"slices"
	"strings"

	"istio.io/api/annotation"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pilotd/pilotd/snapshot/value"
)

func serviceKind() Kind {
	k := builtin[corev1.Service, corev1.ServiceList](Kind{Name: value.KindService, Plural: "services",
		InNamespaces: true, Registry: true, Gauge: "pilot_services"})
	k.Keep = func(o Object) {
		if s, ok := o.(*corev1.Service); ok {
			keepMeta(&s.ObjectMeta)
			s.Status.Conditions = nil
		}
	}
	k.check, k.put = checked(checkService), (*joiner).putServiceSource
	return k
}

// kubernetesService returns the service that a Kubernetes Service defines.
func (j *joiner) kubernetesService(d *serviceSource, host value.ServiceKey) *value.Service {
	s := d.service
	out := &value.Service{
		ServiceKey: host, Name: s.Name, Object: d.key,
		Created: seconds(s.ObjectMeta), Registry: value.RegistryKubernetes,
		Export: value.NewVisibility(commaList(s.Annotations[annotation.NetworkingExportTo.Name]),
			defaultExport(j.config.GetDefaultServiceExportTo(), "~"), s.Namespace),
		Labels: s.Labels,
		NodeLocal: s.Spec.InternalTrafficPolicy != nil &&
			*s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
		PublishNotReady: s.Spec.PublishNotReadyAddresses,
		ExternalIPs:     addressesOf(s.Spec.ExternalIPs),
		SubjectAltNames: j.annotatedAccounts(s),
	}
	if len(s.Spec.Selector) > 0 {
		out.Selector = s.Spec.Selector
	}
	j.locate(s, out)
	for _, p := range s.Spec.Ports {
		out.Ports = addPort(out.Ports, &value.Port{
			Name: p.Name, Number: int(p.Port), Protocol: servicePort(p), TargetPort: targetNumber(p.TargetPort),
			TargetName: p.TargetPort.StrVal,
		})
	}
	out.TrafficDistribution = j.distribution(s.Spec.TrafficDistribution, s.Annotations, nameOf(d.key).space)
	return out
}

// locate sets how clients reach the service: by virtual addresses, directly at its pods, or by another name.
func (j *joiner) locate(s *corev1.Service, out *value.Service) {
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName && s.Spec.ExternalName != "":
		out.Resolution, out.ExternalName, out.External = value.Alias, hostName(s.Spec.ExternalName), true
	case s.Spec.ClusterIP == corev1.ClusterIPNone:
		out.Resolution, out.Headless = value.Passthrough, true
	default:
		for _, ip := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
			if ip = addressOf(ip); ip != "" && !slices.Contains(out.Addresses, ip) {
				out.Addresses = append(out.Addresses, ip)
			}
		}
	}
}

// distribution returns the traffic distribution of the object, or else of its namespace.
func (j *joiner) distribution(field *string, annotations map[string]string, namespace space) string {
	if field != nil {
		if d := distribution(*field); d != "" {
			return d
		}
	}
	if a := annotations[annotation.NetworkingTrafficDistribution.Name]; a != "" {
		return distribution(a)
	}
	return distributionOf(j.namespaces[namespace])
}

// addPort adds a port unless its number is taken. A UDP port yields to one that a proxy can serve.
func addPort(ports []*value.Port, p *value.Port) []*value.Port {
	for i, q := range ports {
		if q.Number != p.Number {
			continue
		}
		if q.Protocol == value.UDP && p.Protocol != value.UDP {
			ports[i] = p
		}
		return ports
	}
	return append(ports, p)
}

func targetNumber(p intstr.IntOrString) int {
	if p.Type == intstr.Int {
		return int(p.IntVal)
	}
	return 0
}

// commaList splits the comma-separated value of an annotation.
func commaList(s string) []string {
	if s == "" {
		return nil
	}
	list := strings.Split(s, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// Annotations that name the identities that may run a service.
const (
	canonicalAccounts  = "alpha.istio.io/canonical-serviceaccounts"
	kubernetesAccounts = "alpha.istio.io/kubernetes-serviceaccounts"
)

// annotatedAccounts returns the identities named by a Service's annotations.
func (j *joiner) annotatedAccounts(s *corev1.Service) []string {
	out := commaList(s.Annotations[canonicalAccounts])
	for _, a := range commaList(s.Annotations[kubernetesAccounts]) {
		out = append(out, "spiffe://"+j.account(s.Namespace, a))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// kubernetesEndpoints returns the endpoints of a Service: from its slices, and from WorkloadEntries that it selects.
func (j *joiner) kubernetesEndpoints(d *serviceSource) []*value.Endpoint {
	if d.service.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	all := j.sliceEndpoints(nameOf(d.key), d.service)
	if d.service.Spec.ClusterIP == corev1.ClusterIPNone || len(d.members) == 0 {
		return all
	}
	all = slices.Clone(all)
	ports := j.kubernetesService(d, d.hosts[0]).Ports
	for member := range d.members {
		if e := j.entries[nameOf(member)].serviceEndpoint(ports); e != nil &&
			selectable(value.ClientSideLB, e.Addresses[0]) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, compareEndpoints)
	return all
}
