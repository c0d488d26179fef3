package ingest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Pod is what the Store keeps of a Kubernetes Pod: a few hundred bytes out of the thousands of the full object.
// Immutable.
type Pod struct {
	namespace, name string
	labels          value.Labels
	// workload is the workload name that telemetry reports for the pod.
	workload, account, node string
	hostName, subDomain     string
	// addresses are the pod's IP addresses, the primary first; empty once the pod has ended.
	addresses []string
	ports     map[string]int
	created   int64
	// ready says that the pod counts as an endpoint of ServiceEntries that select it.
	ready       bool
	alive       bool // not being deleted
	hostNetwork bool
	bad         *problem // why the Pod is refused; nil if it is good
}

func (t *Stripper) pod(p *corev1.Pod) *Pod {
	out := &Pod{
		namespace: t.same(p.Namespace), name: p.Name, labels: t.labels(p.Labels), workload: t.same(workloadName(p)),
		node:    t.same(p.Spec.NodeName),
		account: t.same(cmp.Or(p.Spec.ServiceAccountName, "default")), ports: t.namedPorts(p),
		created: seconds(p.ObjectMeta),
		alive:   p.DeletionTimestamp == nil, hostNetwork: p.Spec.HostNetwork, bad: badPod(p),
	}
	if out.subDomain = p.Spec.Subdomain; out.subDomain != "" {
		out.hostName = cmp.Or(p.Spec.Hostname, p.Name)
	}
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		out.addresses = podAddresses(p)
	}
	out.ready = out.alive && len(out.addresses) > 0 && isReady(p)
	return out
}

func (p *Pod) equal(o *Pod) bool {
	if (p.bad == nil) != (o.bad == nil) || p.bad != nil && *p.bad != *o.bad {
		return false
	}
	return p.namespace == o.namespace && p.name == o.name && p.workload == o.workload && p.account == o.account &&
		p.node == o.node &&
		p.hostName == o.hostName && p.subDomain == o.subDomain && p.created == o.created && p.ready == o.ready &&
		p.alive == o.alive &&
		p.hostNetwork == o.hostNetwork && slices.Equal(p.addresses, o.addresses) && maps.Equal(p.labels, o.labels) &&
		maps.Equal(p.ports, o.ports)
}

// compare orders pods of one cluster that share an address: the first is the one that owns it.
func (p *Pod) compare(o *Pod) int {
	return cmp.Or(
		compareBool(p.alive, o.alive), compareBool(!p.hostNetwork, !o.hostNetwork), compareBool(p.ready, o.ready),
		cmp.Compare(o.created, p.created), cmp.Compare(p.namespace, o.namespace), cmp.Compare(p.name, o.name))
}

func podAddresses(p *corev1.Pod) []string {
	var out []string
	if p.Status.PodIP != "" {
		out = append(out, addressOf(p.Status.PodIP))
	}
	for _, ip := range p.Status.PodIPs {
		if a := addressOf(ip.IP); a != "" && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (t *Stripper) namedPorts(p *corev1.Pod) map[string]int {
	out := map[string]int{}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if _, taken := out[port.Name]; port.Name != "" && !taken {
				out[t.same(port.Name)] = int(port.ContainerPort)
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// workloadName returns the workload name that telemetry reports for a pod: that of its owner, or of the owner's owner
// if that is a ReplicaSet or a Job.
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

// cronJob returns the name of the CronJob that made a Job, if the Job's name ends with a time; else the Job's own name.
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
