package kube

import (
	"reflect"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// kept returns what the Store keeps of an object.
func kept(k value.Kind, o any) any { return ingest.NewKindTable()[k].Strip(new(ingest.Stripper), o) }

// Whatever a Pod or an EndpointSlice has, what is kept of the masked one is what is kept of the whole.
func TestNothingUsedIsMaskedOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		message, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var whole core.Pod
		var masked pod
		if err := whole.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		if err := masked.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		if got, want := kept(value.KindPod, &masked.Pod), kept(value.KindPod, &whole); !reflect.DeepEqual(got,
			want) {
			t.Fatalf("kept %v\nwant %v", got, want)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		s := drawSlice(t)
		message, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var whole discovery.EndpointSlice
		var masked slice
		if err := whole.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		if err := masked.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		if got, want := kept(value.KindEndpointSlice, &masked.EndpointSlice),
			kept(value.KindEndpointSlice, &whole); !reflect.DeepEqual(got, want) {
			t.Fatalf("kept %v\nwant %v", got, want)
		}
	})
}

func TestABookmarkIsRead(t *testing.T) {
	bookmark := core.Pod{ObjectMeta: meta.ObjectMeta{ResourceVersion: "7",
		Annotations: map[string]string{meta.InitialEventsAnnotationKey: "true"}}}
	message, err := bookmark.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var got pod
	if err := got.Unmarshal(message); err != nil || got.ResourceVersion != "7" ||
		got.Annotations[meta.InitialEventsAnnotationKey] != "true" {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestBrokenMessagesAreRefused(t *testing.T) {
	for _, text := range []string{"\xff", "\x0a\xff", "\x12\x05\x12\x09"} {
		if (&pod{}).Unmarshal([]byte(text)) == nil || (&slice{}).Unmarshal([]byte(text)) == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func texts() *rapid.Generator[string] { return rapid.SampledFrom([]string{"", "a", "web", "10.0.0.1"}) }

func tables() *rapid.Generator[map[string]string] {
	return rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"), texts(), 0, 12)
}

func drawMeta(t *rapid.T) meta.ObjectMeta {
	at := meta.NewTime(time.Unix(int64(rapid.IntRange(0, 1<<40).Draw(t, "created")), 0))
	yes := rapid.Bool().Draw(t, "controller")
	m := meta.ObjectMeta{
		Namespace: texts().Draw(t, "namespace"), Name: "a" + texts().Draw(t, "name"),
		GenerateName: texts().Draw(t, "generated"), UID: "u", ResourceVersion: "7",
		Labels: tables().Draw(t, "labels"), Annotations: tables().Draw(t, "annotations"), CreationTimestamp: at,
		Finalizers: []string{"f"},
		OwnerReferences: []meta.OwnerReference{{Kind: rapid.SampledFrom([]string{"ReplicaSet", "Job"}).Draw(t, "owner"),
			Name: texts().Draw(t, "owner name"), Controller: &yes}},
		ManagedFields: []meta.ManagedFieldsEntry{{Manager: "m", Time: &at, FieldsV1: meta.NewFieldsV1("{}")}},
	}
	if rapid.Bool().Draw(t, "deleted") {
		m.DeletionTimestamp = &at
	}
	return m
}

func drawPod(t *rapid.T) *core.Pod {
	p := usualPod()
	p.ObjectMeta = drawMeta(t)
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Ports = append(p.Spec.Containers[i].Ports,
			core.ContainerPort{Name: texts().Draw(t, "port"),
				ContainerPort: int32(rapid.IntRange(0, 65535).Draw(t, "number"))})
	}
	p.Spec.NodeName, p.Spec.ServiceAccountName, p.Spec.HostNetwork = texts().Draw(t, "node"),
		texts().Draw(t, "account"), rapid.Bool().Draw(t, "host network")
	p.Spec.Hostname, p.Spec.Subdomain = texts().Draw(t, "host name"), texts().Draw(t, "subdomain")
	p.Status.Phase = rapid.SampledFrom([]core.PodPhase{core.PodRunning, core.PodFailed, ""}).Draw(t, "phase")
	p.Status.PodIP, p.Status.PodIPs = texts().Draw(t, "ip"), []core.PodIP{{IP: texts().Draw(t, "second ip")}}
	p.Status.Conditions[1].Status = rapid.SampledFrom([]core.ConditionStatus{core.ConditionTrue,
		core.ConditionFalse}).Draw(t, "ready")
	return p
}

func drawSlice(t *rapid.T) *discovery.EndpointSlice {
	flag := func(name string) *bool {
		return rapid.SampledFrom([]*bool{nil, new(bool), &[]bool{true}[0]}).Draw(t, name)
	}
	s := usualSlice(rapid.IntRange(0, 5).Draw(t, "endpoints"))
	s.ObjectMeta = drawMeta(t)
	if rapid.Bool().Draw(t, "of a service") {
		s.Labels = map[string]string{discovery.LabelServiceName: texts().Draw(t, "service")}
	}
	s.AddressType = rapid.SampledFrom([]discovery.AddressType{discovery.AddressTypeIPv4, discovery.AddressTypeFQDN,
		""}).Draw(t, "type")
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		e.Conditions = discovery.EndpointConditions{Ready: flag("ready"), Serving: flag("serving"),
			Terminating: flag("terminating")}
		if e.TargetRef.Namespace = texts().Draw(t, "namespace"); rapid.Bool().Draw(t, "nobody's") {
			e.TargetRef = nil
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "ports") {
		name, number := texts().Draw(t, "port"), int32(rapid.IntRange(0, 65535).Draw(t, "number"))
		s.Ports = append(s.Ports, discovery.EndpointPort{Name: &name, Port: &number}, discovery.EndpointPort{})
	}
	return s
}

// usualPod returns a pod with as much in it as a real one has.
func usualPod() *core.Pod {
	now := meta.NewTime(time.Unix(1_700_000_000, 0))
	p := &core.Pod{ObjectMeta: meta.ObjectMeta{
		Namespace: "team", Name: "web-5c9f8d-x7k2p", GenerateName: "web-5c9f8d-",
		UID: "7f1c2a52-0a54-4a9c-9e2f-3f1e2b6f9a10", CreationTimestamp: now,
		Labels: map[string]string{"app": "web", "version": "v1", "pod-template-hash": "5c9f8d",
			"security.istio.io/tlsMode": "istio", "service.istio.io/canonical-name": "web"},
		Annotations: map[string]string{
			"sidecar.istio.io/status": `{"initContainers":["istio-init"],"containers":["istio-proxy"]}`,
			"prometheus.io/scrape":    "true"},
		ManagedFields: []meta.ManagedFieldsEntry{{Manager: "kubelet",
			FieldsV1: meta.NewFieldsV1(string(make([]byte, 1500)))}},
	}}
	size := core.ResourceList{core.ResourceCPU: resource.MustParse("100m"),
		core.ResourceMemory: resource.MustParse("128Mi")}
	for _, name := range []string{"app", "istio-proxy"} {
		c := core.Container{Name: name, Image: "registry.example.com/" + name + ":1",
			Ports:     []core.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Resources: core.ResourceRequirements{Requests: size, Limits: size}}
		for range 10 {
			c.Env = append(c.Env,
				core.EnvVar{Name: "A_USUAL_NAME",
					ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "status.podIP"}}})
			c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{Name: "volume", MountPath: "/a/usual/path"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		p.Spec.Volumes = append(p.Spec.Volumes,
			core.Volume{Name: "volume", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, core.ContainerStatus{Name: name, Image: c.Image,
			Ready: true, ContainerID: "containerd://" + string(make([]byte, 64))})
	}
	p.Spec.NodeName, p.Spec.ServiceAccountName = "node-1", "web"
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = core.PodRunning, "10.1.2.3", []core.PodIP{{IP: "10.1.2.3"}}
	for _, of := range []core.PodConditionType{core.PodInitialized, core.PodReady, core.ContainersReady,
		core.PodScheduled} {
		p.Status.Conditions = append(p.Status.Conditions, core.PodCondition{Type: of, Status: core.ConditionTrue,
			LastTransitionTime: now})
	}
	return p
}

// usualSlice returns a slice of n endpoints.
func usualSlice(n int) *discovery.EndpointSlice {
	yes, node, zone := true, "node-1", "zone-1"
	s := &discovery.EndpointSlice{AddressType: discovery.AddressTypeIPv4, ObjectMeta: meta.ObjectMeta{
		Namespace: "team", Name: "web-abcde", Labels: map[string]string{discovery.LabelServiceName: "web"},
		ManagedFields: []meta.ManagedFieldsEntry{{Manager: "kube-controller-manager",
			FieldsV1: meta.NewFieldsV1(string(make([]byte, 700)))}},
	}}
	for range n {
		s.Endpoints = append(s.Endpoints, discovery.Endpoint{
			Addresses: []string{"10.1.2.3"}, NodeName: &node, Zone: &zone,
			Conditions: discovery.EndpointConditions{Ready: &yes, Serving: &yes},
			Hints:      &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: zone}}},
			TargetRef: &core.ObjectReference{Kind: "Pod", Namespace: "team", Name: "web-5c9f8d-x7k2p",
				UID: "7f1c2a52-0a54-4a9c-9e2f-3f1e2b6f9a10"},
		})
	}
	return s
}

// From the bytes of the API server to what is kept: of everything, and of what is used.
func BenchmarkArrival(b *testing.B) {
	type message interface {
		Unmarshal([]byte) error
	}
	p, s := usualPod(), usualSlice(100)
	ofPod, _ := p.Marshal()
	ofSlice, _ := s.Marshal()
	for _, c := range []struct {
		name string
		data []byte
		make func() message
	}{
		{"pod/whole", ofPod, func() message { return &core.Pod{} }},
		{"pod/masked", ofPod, func() message { return &pod{} }},
		{"slice/whole", ofSlice, func() message { return &discovery.EndpointSlice{} }},
		{"slice/masked", ofSlice, func() message { return &slice{} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			kind := value.KindPod
			if strings.HasPrefix(c.name, "slice") {
				kind = value.KindEndpointSlice
			}
			read := keeper(ingest.NewKindTable()[kind])
			b.ReportAllocs()
			b.SetBytes(int64(len(c.data)))
			for b.Loop() {
				o := c.make()
				if err := o.Unmarshal(c.data); err != nil {
					b.Fatal(err)
				}
				read(o)
			}
		})
	}
}
