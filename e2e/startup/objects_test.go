package startup

import (
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// shape returns a mesh of services with pods each; a tenth of the services has a
// VirtualService, a tenth a DestinationRule.
func shape(services, pods int) mesh.Shape {
	return mesh.Shape{Seed: 1, Namespaces: 100, Services: services, Pods: pods, TCP: 0.1, VirtualServices: 0.1,
		DestinationRules: 0.1}
}

// realistic gives the objects of a mesh what controllers and kubelets write into real
// ones and pilotd has no use for. n tells objects apart.
func realistic(o meta.Object, n int) {
	o.SetUID(types.UID(fmt.Sprintf("%08x-5c1f-4b5e-9d0c-%012x", n, n*7919)))
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(meta.NewTime(time.Unix(1_700_000_000, 0)))
	}
	o.SetManagedFields([]meta.ManagedFieldsEntry{managed("kube-controller-manager"), managed("kubelet")})
	switch o := o.(type) {
	case *core.Service:
		o.Spec.ClusterIP = fmt.Sprintf("10.%d.%d.%d", 96+n>>16, n>>8&255, n&255)
		o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		o.Spec.Type, o.Spec.SessionAffinity = core.ServiceTypeClusterIP, core.ServiceAffinityNone
		o.Spec.IPFamilies = []core.IPFamily{core.IPv4Protocol}
	case *core.Pod:
		realisticPod(o, n)
	}
}

func managed(by string) meta.ManagedFieldsEntry {
	now := meta.NewTime(time.Unix(1_700_000_000, 0))
	return meta.ManagedFieldsEntry{
		Manager: by, Operation: meta.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
		FieldsV1: meta.NewFieldsV1(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:version":{}},` +
			`"f:ownerReferences":{".":{},"k:{\"uid\":\"0d0dd5e1-52ac-4f60-8c0a-6c6d21fdf7a4\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},` +
			`"f:env":{".":{},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{}},` +
			`"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{}}}`),
	}
}

func realisticPod(p *core.Pod, n int) {
	yes := true
	set := p.Labels["app"] + "-" + p.Labels["pod-template-hash"]
	p.GenerateName = set + "-"
	p.OwnerReferences = []meta.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set,
		UID: "0d0dd5e1-52ac-4f60-8c0a-6c6d21fdf7a4", Controller: &yes, BlockOwnerDeletion: &yes}}
	p.Annotations = map[string]string{
		"kubectl.kubernetes.io/restartedAt": "2026-11-01T10:00:00Z", "prometheus.io/scrape": "true",
		"prometheus.io/port":      "15020",
		"sidecar.istio.io/status": `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket","istio-envoy","istio-data","istio-token"]}`,
	}
	p.Spec.Volumes = []core.Volume{
		{Name: "istio-envoy", VolumeSource: core.VolumeSource{
			EmptyDir: &core.EmptyDirVolumeSource{Medium: core.StorageMediumMemory}}},
		{Name: "config", VolumeSource: core.VolumeSource{
			ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: "config"}}}},
	}
	p.Spec.Containers = []core.Container{
		container("app", "registry.example.com/team/app:1.27.3", core.ContainerPort{Name: "http", ContainerPort: 8080,
			Protocol: core.ProtocolTCP}),
		container("istio-proxy", "docker.io/istio/proxyv2:1.30.0", core.ContainerPort{Name: "http-envoy-prom",
			ContainerPort: 15090, Protocol: core.ProtocolTCP}),
	}
	p.Spec.RestartPolicy, p.Spec.DNSPolicy, p.Spec.SchedulerName = core.RestartPolicyAlways, core.DNSClusterFirst,
		"default-scheduler"
	p.Spec.Tolerations = []core.Toleration{
		{Key: "node.kubernetes.io/not-ready", Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute},
		{Key: "node.kubernetes.io/unreachable", Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute},
	}
	started := meta.NewTime(time.Unix(1_700_000_000, 0))
	p.Status.HostIP, p.Status.StartTime, p.Status.QOSClass = fmt.Sprintf("192.168.0.%d", n%30+1), &started,
		core.PodQOSBurstable
	for _, t := range []core.PodConditionType{core.PodInitialized, core.ContainersReady, core.PodScheduled,
		"PodReadyToStartContainers"} {
		p.Status.Conditions = append(p.Status.Conditions, core.PodCondition{Type: t, Status: core.ConditionTrue,
			LastTransitionTime: started})
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, core.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &yes,
			State:       core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: started}},
			ImageID:     c.Image + "@sha256:7173b809ca12ec5dee4506cd86be934c4596dd234ee82c0662eac04a8c2c71dc",
			ContainerID: fmt.Sprintf("containerd://%064x", n),
		})
	}
}

func container(name, image string, port core.ContainerPort) core.Container {
	probe := &core.Probe{ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Path: "/healthz/ready",
		Port: intstr.FromInt32(15021)}}, PeriodSeconds: 15, FailureThreshold: 4}
	size := core.ResourceList{core.ResourceCPU: resource.MustParse("100m"),
		core.ResourceMemory: resource.MustParse("128Mi")}
	c := core.Container{
		Name: name, Image: image, ImagePullPolicy: core.PullIfNotPresent, Ports: []core.ContainerPort{port},
		ReadinessProbe: probe, StartupProbe: probe,
		Resources: core.ResourceRequirements{Requests: size, Limits: size},
		VolumeMounts: []core.VolumeMount{{Name: "istio-envoy", MountPath: "/etc/istio/proxy"},
			{Name: "config", MountPath: "/etc/config", ReadOnly: true}},
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: core.TerminationMessageReadFile,
	}
	for _, name := range []string{"LOG_LEVEL", "PILOT_CERT_PROVIDER", "CA_ADDR", "TRUST_DOMAIN",
		"ISTIO_META_CLUSTER_ID", "GOMAXPROCS"} {
		c.Env = append(c.Env, core.EnvVar{Name: name, Value: "a value of usual length"})
	}
	for _, field := range []string{"metadata.name", "metadata.namespace", "status.podIP", "spec.nodeName"} {
		c.Env = append(c.Env, core.EnvVar{Name: "FROM_" + field,
			ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{APIVersion: "v1", FieldPath: field}}})
	}
	return c
}
