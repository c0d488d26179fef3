package ingest

import (
	"cmp"
	"slices"
	"strings"

	"istio.io/api/label"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// pod is a Pod in force and what is derived from it. Immutable but for object, which is replaced by one of the same meaning.
type pod struct {
	object *corev1.Pod
	origin
	workload *value.Workload
	// addresses are the pod's, the primary first; none once it has ended.
	addresses []string
	// ready pods are endpoints of the ServiceEntries that select them.
	ready       bool
	alive       bool // not being deleted
	hostNetwork bool
}

func (p *pod) equal(o *pod) bool {
	return p.origin.equal(&o.origin) && p.workload.Equal(o.workload) && slices.Equal(p.addresses, o.addresses) &&
		p.ready == o.ready && p.alive == o.alive && p.hostNetwork == o.hostNetwork
}

// before says which of two pods is asked about an address that both have.
func (p *pod) before(o *pod) bool {
	return cmp.Or(
		compareBool(p.alive, o.alive), compareBool(!p.hostNetwork, !o.hostNetwork), compareBool(p.ready, o.ready),
		cmp.Compare(seconds(o.object.ObjectMeta), seconds(p.object.ObjectMeta)),
		cmp.Compare(p.object.Namespace, o.object.Namespace), cmp.Compare(p.object.Name, o.object.Name)) < 0
}

// compareBool orders true before false.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// seconds is the creation time since the epoch, 0 if there is none.
func seconds(m metav1.ObjectMeta) int64 {
	if m.CreationTimestamp.IsZero() {
		return 0
	}
	return m.CreationTimestamp.Unix()
}

func (w *world) putPod(name objectName, object any) {
	if p, ok := object.(*corev1.Pod); ok {
		w.derivePod(name, p)
		return
	}
	if prev := w.pods[name]; prev != nil {
		w.indexPod(name, prev, false)
		delete(w.pods, name)
		w.podChanged(name, prev)
	}
}

// derivePod brings the pod of that name to object and the world around it.
func (w *world) derivePod(name objectName, object *corev1.Pod) {
	next, prev := w.podOf(object), w.pods[name]
	if prev != nil {
		if prev.equal(next) && prev.object.CreationTimestamp.Equal(&object.CreationTimestamp) {
			prev.object = object
			return
		}
		w.indexPod(name, prev, false)
	}
	w.pods[name] = next
	w.indexPod(name, next, true)
	if prev != nil {
		w.podChanged(name, prev)
	}
	w.podChanged(name, next)
}

func (w *world) indexPod(name objectName, p *pod, in bool) {
	change(w.podsIn, name.namespace, name, in)
	change(w.podsByNode, p.node, name, in)
	for _, a := range p.addresses {
		change(w.podsByAddress, a, name, in)
	}
	key := value.ObjectKey{Kind: value.KindPod, Namespace: name.namespace, Name: name.name}
	if !p.ready {
		return
	}
	for owner := range w.ofEntries.matching(name.namespace, p.workload.Labels) {
		w.definers[owner].member(key, in)
		w.markDefiner(owner)
	}
}

// podChanged marks what looks at the pod p, as it is or was.
func (w *world) podChanged(name objectName, p *pod) {
	for _, s := range w.slicesByPod[name] {
		w.sliceStale(s)
	}
	for _, a := range p.addresses {
		w.marks.addresses.add(a)
		for _, s := range w.slicesByAddress[objectName{name.namespace, a}] {
			w.sliceStale(s)
		}
	}
}

// podOf derives what counts of a pod.
func (w *world) podOf(p *corev1.Pod) *pod {
	locality := w.nodes[p.Spec.NodeName]
	if l := p.Labels[localityLabel]; l != "" {
		locality = labelLocality(l)
	}
	tls := tlsDisabled
	if mode, ok := p.Labels[label.SecurityTlsMode.Name]; ok {
		tls = mode
	}
	network := w.network(p.Labels[label.TopologyNetwork.Name])
	account := p.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	out := &pod{
		object: p, hostNetwork: p.Spec.HostNetwork, alive: p.DeletionTimestamp == nil,
		origin: w.origin(person{
			Identity: value.Identity{
				Namespace: p.Namespace, Workload: workloadName(p), ServiceAccount: w.account(p.Namespace, account), Network: network, TLSMode: tls,
			},
			labels: p.Labels, locality: locality, node: p.Spec.NodeName,
		}),
	}
	out.pod = p.Namespace + "/" + p.Name
	if out.subDomain = p.Spec.Subdomain; out.subDomain != "" {
		out.hostName = cmp.Or(p.Spec.Hostname, p.Name)
	}
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		out.addresses = podAddresses(p)
	}
	out.ready = out.alive && len(out.addresses) > 0 && isReady(p)
	out.workload = &value.Workload{
		Namespace: p.Namespace, Name: p.Name, Addresses: out.addresses, Labels: p.Labels, Locality: locality, Node: p.Spec.NodeName,
		ServiceAccount: account, Network: network, NamedPorts: namedPorts(p), Pod: true,
	}
	return out
}

func podAddresses(p *corev1.Pod) []string {
	var out []string
	if p.Status.PodIP != "" {
		out = append(out, p.Status.PodIP)
	}
	for _, ip := range p.Status.PodIPs {
		if ip.IP != "" && !slices.Contains(out, ip.IP) {
			out = append(out, ip.IP)
		}
	}
	return out
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func namedPorts(p *corev1.Pod) map[string]int {
	out := map[string]int{}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if _, taken := out[port.Name]; port.Name != "" && !taken {
				out[port.Name] = int(port.ContainerPort)
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// workloadName is the name under which telemetry reports a pod: that of what made it, seen through the ReplicaSet or Job in between.
func workloadName(p *corev1.Pod) string {
	if name := p.Labels["service.istio.io/workload-name"]; name != "" {
		return name
	}
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || p.GenerateName == "" {
		return p.Name
	}
	switch owner.Kind {
	case "ReplicaSet":
		for _, hash := range []string{p.Labels["pod-template-hash"], p.Labels["rollouts-pod-template-hash"]} {
			if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" {
				return name
			}
		}
	case "ReplicationController":
		return cmp.Or(p.Labels["deploymentconfig"], owner.Name)
	case "Job":
		return cronJob(owner.Name)
	}
	return cmp.Or(owner.Name, p.Name)
}

// cronJob is the name of the CronJob that a Job's name ends with a time of, or the Job's own.
func cronJob(job string) string {
	i := strings.LastIndexByte(job, '-')
	if i <= 0 {
		return job
	}
	if digits := job[i+1:]; len(digits) < 8 || len(digits) > 10 || strings.Trim(digits, "0123456789") != "" {
		return job
	}
	return job[:i]
}
