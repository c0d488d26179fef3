package kube

import (
	"maps"
	"strings"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The functions here overwrite objects that were decoded just now and belong to nobody else, and leave their result as it is when called again.

// keepMeta keeps of the metadata what names, ages and labels the object, and Istio's annotations.
func keepMeta(m *meta.ObjectMeta) {
	*m = meta.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: keepAnnotations(m.Annotations), Generation: m.Generation,
		ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
}

func keepAnnotations(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(key, _ string) bool {
		domain, _, ok := strings.Cut(key, "/")
		return !ok || domain != "istio.io" && !strings.HasSuffix(domain, ".istio.io")
	})
	if len(all) == 0 {
		return nil
	}
	return all
}

func keepNamespace(o any) any {
	if n, ok := o.(*core.Namespace); ok {
		keepMeta(&n.ObjectMeta)
		n.Spec, n.Status = core.NamespaceSpec{}, core.NamespaceStatus{}
	}
	return o
}

func keepNode(o any) any {
	if n, ok := o.(*core.Node); ok {
		keepMeta(&n.ObjectMeta)
		n.Spec, n.Status = core.NodeSpec{}, core.NodeStatus{Addresses: n.Status.Addresses}
	}
	return o
}

func keepService(o any) any {
	if s, ok := o.(*core.Service); ok {
		keepMeta(&s.ObjectMeta)
		s.Status.Conditions = nil
	}
	return o
}

func keepConfigMap(o any) any {
	if c, ok := o.(*core.ConfigMap); ok {
		keepMeta(&c.ObjectMeta)
		c.BinaryData = nil
		maps.DeleteFunc(c.Data, func(key, _ string) bool { return key != "mesh" })
	}
	return o
}

func keepEndpointSlice(o any) any {
	if s, ok := o.(*discovery.EndpointSlice); ok {
		keepMeta(&s.ObjectMeta)
		for i := range s.Endpoints {
			s.Endpoints[i].Hints, s.Endpoints[i].DeprecatedTopology = nil, nil
		}
	}
	return o
}

// keepPod keeps what makes the pod an endpoint and the home of a proxy. The owners and the generated part of the name lead to the workload's name.
func keepPod(o any) any {
	p, ok := o.(*core.Pod)
	if !ok {
		return o
	}
	owners, generated := p.OwnerReferences, p.GenerateName
	keepMeta(&p.ObjectMeta)
	p.OwnerReferences, p.GenerateName = owners, generated
	p.Spec = core.PodSpec{
		NodeName: p.Spec.NodeName, ServiceAccountName: p.Spec.ServiceAccountName, Hostname: p.Spec.Hostname, Subdomain: p.Spec.Subdomain,
		HostNetwork: p.Spec.HostNetwork, Containers: keepContainers(p.Spec.Containers), InitContainers: keepContainers(p.Spec.InitContainers),
	}
	p.Status = core.PodStatus{
		Phase: p.Status.Phase, PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs, HostIP: p.Status.HostIP, Conditions: keepReady(p.Status.Conditions),
	}
	return o
}

// keepContainers keeps the ports, and the names, which tell a sidecar.
func keepContainers(all []core.Container) []core.Container {
	if len(all) == 0 {
		return nil
	}
	kept := make([]core.Container, len(all))
	for i, c := range all {
		kept[i] = core.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
	}
	return kept
}

func keepReady(all []core.PodCondition) []core.PodCondition {
	for _, c := range all {
		if c.Type == core.PodReady {
			return []core.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return nil
}
