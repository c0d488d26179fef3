package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// dress adds what objects of real clusters have in addition to what a control plane reads, and removes what the API
// server assigns.
func dress(o mesh.Object) mesh.Object {
	o.SetCreationTimestamp(metav1.Time{})
	switch o := o.(type) {
	case *corev1.Namespace:
		o.Labels = map[string]string{"istio-injection": "enabled"}
	case *corev1.Node:
		dressNode(o)
	case *corev1.Service:
		o.Labels = map[string]string{"app": o.Name}
		if o.Spec.ClusterIP != corev1.ClusterIPNone {
			o.Spec.ClusterIP = "" // the server assigns addresses itself
		}
	case *discoveryv1.EndpointSlice:
		o.Labels[discoveryv1.LabelManagedBy] = "loadtest.pilotd.io"
	case *corev1.Pod:
		dressPod(o)
	}
	return o
}

func dressNode(o *corev1.Node) {
	o.Labels["kubernetes.io/hostname"], o.Labels["kubernetes.io/os"], o.Labels["kubernetes.io/arch"] = o.Name, "linux",
		"amd64"
	o.Labels["node.kubernetes.io/instance-type"] = "standard-32"
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("5000")}
	o.Status = corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: o.Name}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			Reason: "KubeletReady", LastTransitionTime: start(), LastHeartbeatTime: start()}},
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.0", OSImage: "Linux", OperatingSystem: "linux",
			Architecture: "amd64", ContainerRuntimeVersion: "containerd://2.1.4"},
	}
}

// start returns the creation time of everything.
func start() metav1.Time { return metav1.Unix(1_700_000_000, 0) }

// dressPod adds what injection, the scheduler and a kubelet add to a pod.
func dressPod(o *corev1.Pod) {
	app, hash := o.Labels["app"], o.Labels["pod-template-hash"]
	owner := fmt.Sprintf("%s-%s-%s", app, o.Labels["version"], hash)
	yes := true
	o.GenerateName = owner + "-"
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner,
		UID: uid(o.Namespace, owner), Controller: &yes, BlockOwnerDeletion: &yes}}
	o.Annotations = map[string]string{
		"istio.io/rev": "default", "kubectl.kubernetes.io/default-container": app,
		"kubectl.kubernetes.io/default-logs-container": app,
		"prometheus.io/path":                           "/stats/prometheus", "prometheus.io/port": "15020",
		"prometheus.io/scrape":    "true",
		"sidecar.istio.io/status": `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket","istio-envoy","istio-data","istio-podinfo","istio-token","istiod-ca-cert"],"revision":"default"}`,
	}
	seconds := int64(30)
	if o.Labels["sidecar.istio.io/inject"] == "false" {
		o.Spec.Containers = []corev1.Container{proxy(o, "router")}
	} else {
		o.Spec.Containers = []corev1.Container{application(app), proxy(o, "sidecar")}
		o.Spec.InitContainers = []corev1.Container{redirection()}
	}
	o.Spec.Volumes = volumes()
	o.Spec.RestartPolicy, o.Spec.DNSPolicy, o.Spec.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst,
		corev1.DefaultSchedulerName
	o.Spec.TerminationGracePeriodSeconds = &seconds
	o.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	dressStatus(o)
}

// dressStatus sets the status that a kubelet would write.
func dressStatus(o *corev1.Pod) {
	at := start()
	o.Status.StartTime, o.Status.QOSClass = &at, corev1.PodQOSBurstable
	o.Status.Conditions = nil
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady,
		corev1.PodReady} {
		o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue,
			LastTransitionTime: at})
	}
	yes := true
	for _, c := range o.Spec.Containers {
		o.Status.ContainerStatuses = append(o.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: c.Name, Ready: true, Started: &yes, Image: c.Image,
				ImageID:     c.Image + "@sha256:0000000000000000000000000000000000000000000000000000000000000000",
				ContainerID: "containerd://" + string(uid(o.Name, c.Name)),
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}})
	}
}
