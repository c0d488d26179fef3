package ingest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"istio.io/api/annotation"
	"istio.io/api/label"
	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func workloadEntryKind() Kind {
	k := custom(Kind{Name: value.KindWorkloadEntry, Plural: "workloadentries"},
		func(o *clientnet.WorkloadEntry) Message { return &o.Spec }, checkWorkloadEntry)
	k.put = func(j *joiner, key value.ObjectKey, object any) { j.putWorkloadEntry(nameOf(key), object) }
	return k
}

// workloadEntry is a WorkloadEntry in force and the values derived from it. Immutable except for object, as in pod.
type workloadEntry struct {
	object *clientnet.WorkloadEntry
	inline
	workload *value.Workload
	healthy  bool
}

// inline is an endpoint given by address, in a WorkloadEntry or in a ServiceEntry's list.
type inline struct {
	origin
	address string
	ports   map[string]uint32
	weight  uint32
}

func (i *inline) equal(o *inline) bool {
	return i.origin.equal(&o.origin) && i.address == o.address && i.weight == o.weight && maps.Equal(i.ports, o.ports)
}

func (e *workloadEntry) compare(o *workloadEntry) int {
	return cmp.Or(
		cmp.Compare(seconds(e.object.ObjectMeta), seconds(o.object.ObjectMeta)),
		cmp.Compare(e.object.Namespace, o.object.Namespace), cmp.Compare(e.object.Name, o.object.Name))
}

// A WorkloadEntry whose health its agent checks counts only after a check has succeeded.
const (
	healthCheckedAnnotation = "proxy.istio.io/health-checks-enabled"
	healthyCondition        = "Healthy"
)

func (j *joiner) putWorkloadEntry(name objectName, object any) {
	if e, ok := object.(*clientnet.WorkloadEntry); ok {
		j.deriveEntry(name, e)
		return
	}
	if prev := j.entries[name]; prev != nil {
		j.indexEntry(name, prev, false)
		delete(j.entries, name)
	}
}

func (j *joiner) deriveEntry(name objectName, object *clientnet.WorkloadEntry) {
	next, prev := j.entryOf(name, object), j.entries[name]
	if prev != nil {
		if prev.inline.equal(&next.inline) && prev.workload.Equal(next.workload) && prev.healthy == next.healthy &&
			prev.object.CreationTimestamp.Equal(&object.CreationTimestamp) {
			prev.object = object
			return
		}
		j.indexEntry(name, prev, false)
	}
	j.entries[name] = next
	j.indexEntry(name, next, true)
}

func (j *joiner) indexEntry(name objectName, e *workloadEntry, in bool) {
	change(j.entriesIn, name.space, name, in)
	for _, a := range e.workload.Addresses {
		change(j.entriesByAddress, a, name, in)
		j.marks.addresses.add(a)
	}
	if !e.healthy {
		return
	}
	key := name.key(value.KindWorkloadEntry)
	for _, index := range []selectors{j.ofEntries, j.ofServices} {
		for owner := range index.matching(name.space, e.workload.Labels) {
			j.serviceSources[owner].member(key, in)
			j.markServiceSource(owner)
		}
	}
}

func (j *joiner) entryOf(name objectName, e *clientnet.WorkloadEntry) *workloadEntry {
	labels := value.Labels{}
	maps.Copy(labels, e.Spec.GetLabels())
	maps.Copy(labels, e.Labels)
	out := &workloadEntry{object: e, healthy: entryHealthy(e), inline: j.inline(entryName(e, labels), name.space,
		&e.Spec, labels)}
	out.pod = e.Namespace + "/" + e.Name
	out.workload = &value.Workload{
		Namespace: e.Namespace, Name: e.Name, Addresses: []string{out.address}, Labels: labels, Locality: out.locality,
		ServiceAccount: e.Spec.GetServiceAccount(), Network: out.identity.Value().Network, Ports: e.Spec.GetPorts(),
	}
	if out.address == "" {
		out.workload.Addresses = nil
	}
	return out
}

// entryName returns the workload name that telemetry reports for a WorkloadEntry: its group's name if its
// agent registered it, else that of its label, else the entry's own.
func entryName(e *clientnet.WorkloadEntry, labels value.Labels) string {
	if group, ok := e.Annotations[annotation.IoIstioAutoRegistrationGroup.Name]; ok {
		return group
	}
	if name, ok := labels[label.ServiceWorkloadName.Name]; ok {
		return name
	}
	return e.Name
}

func entryHealthy(e *clientnet.WorkloadEntry) bool {
	if e.Annotations[healthCheckedAnnotation] != "true" {
		return true
	}
	for _, c := range e.Status.GetConditions() {
		if c.GetType() == healthyCondition {
			return strings.EqualFold(c.GetStatus(), "True")
		}
	}
	return false
}

// inline derives an inline from an address. The endpoint accepts mutual TLS if its labels say so or it names a service
// account.
func (j *joiner) inline(name string, in space, e *networking.WorkloadEntry, labels value.Labels) inline {
	locality := localityOf(e.GetLocality())
	if e.GetLocality() == "" && labels[localityLabel] != "" {
		locality = labelLocality(labels[localityLabel])
	}
	tls, account := tlsDisabled, ""
	if a := e.GetServiceAccount(); a != "" {
		tls, account = tlsIstio, j.account(in.name(), a)
		if full, ok := strings.CutPrefix(a, "spiffe://"); ok {
			account = full
		}
	}
	if mode, ok := labels[label.SecurityTlsMode.Name]; ok {
		tls = mode
	}
	return inline{
		origin: j.origin(person{
			Identity: value.Identity{
				Cluster: in.cluster(), Namespace: in.name(), Workload: name, ServiceAccount: account, TLSMode: tls,
				Network: cmp.Or(e.GetNetwork(), labels[label.TopologyNetwork.Name]),
			},
			labels: labels, locality: locality,
		}),
		address: addressOf(e.GetAddress()), ports: e.GetPorts(), weight: max(1, e.GetWeight()),
	}
}

// serviceEndpoint returns the endpoint that a Kubernetes Service has at the workload, or nil if the workload serves
// none of the ports; see value.Port.EntryTarget.
func (e *workloadEntry) serviceEndpoint(ports []*value.Port) *value.Endpoint {
	at := e.inline
	at.ports = nil // without these, endpoint would look ports up by the service port's name alone
	return at.endpoint(ports, func(p *value.Port) uint32 { return p.EntryTarget(e.ports) })
}

// endpoint returns the endpoint at this address, or nil if it serves no port. target returns the default target of a
// service port, 0 for none.
func (i *inline) endpoint(ports []*value.Port, target func(*value.Port) uint32) *value.Endpoint {
	out := i.origin.endpoint()
	out.Addresses, out.Weight, out.Health = []string{i.address}, i.weight, i.health(value.HealthUnknown)
	for _, p := range ports {
		n := cmp.Or(i.ports[p.Name], target(p))
		if strings.HasPrefix(i.address, "unix://") {
			out.Ports = append(out.Ports, value.EndpointPort{Name: p.Name})
		} else if n != 0 {
			out.Ports = append(out.Ports, value.EndpointPort{Name: p.Name, Port: n})
		}
	}
	slices.SortFunc(out.Ports, comparePorts)
	if len(out.Ports) == 0 || i.address == "" {
		return nil
	}
	return out
}
