package kube

import (
	"reflect"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/snapshot/value"
)

func TestOfAPodOnlyTheUsedFieldsAreKept(t *testing.T) {
	read := func(text string) *core.Pod {
		var p core.Pod
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		return &p
	}
	pod := read(`
metadata:
  name: a
  namespace: b
  uid: u
  generateName: a-
  labels: {app: a}
  annotations: {sidecar.istio.io/status: x, note: y, kubernetes.io/config.seen: z, evilistio.io/a: b}
  ownerReferences: [{kind: ReplicaSet, name: a-1}]
  managedFields: [{manager: kubelet}]
spec:
  nodeName: n
  serviceAccountName: sa
  hostname: h
  subdomain: s
  volumes: [{name: v}]
  containers:
  - name: c
    image: i
    env: [{name: SECRET, value: x}]
    ports: [{name: http, containerPort: 80}]
status:
  phase: Running
  podIP: 10.0.0.1
  podIPs: [{ip: 10.0.0.1}]
  startTime: "2024-01-01T00:00:00Z"
  conditions: [{type: Initialized, status: "True"}, {type: Ready, status: "True", lastTransitionTime: "2024-01-01T00:00:00Z"}]
  containerStatuses: [{name: c, restartCount: 3}]
`)
	want := read(`
metadata:
  name: a
  namespace: b
  generateName: a-
  labels: {app: a}
  ownerReferences: [{kind: ReplicaSet, name: a-1}]
spec:
  nodeName: n
  serviceAccountName: sa
  hostname: h
  subdomain: s
  containers:
  - name: c
    ports: [{name: http, containerPort: 80}]
status:
  phase: Running
  podIP: 10.0.0.1
  podIPs: [{ip: 10.0.0.1}]
  conditions: [{type: Ready, status: "True"}]
`)
	if got, want := arrived(t, pod), arrived(t, want); !reflect.DeepEqual(got, want) {
		t.Errorf("kept %v\nwant %v", got, want)
	}
}

// arrived returns what is kept of a Pod.
func arrived(t *testing.T, p *core.Pod) *arrival {
	t.Helper()
	a, err := builtinKind(t, value.KindPod).arrive(p, detached(nil))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestKeepIsTotal(t *testing.T) {
	builtin, _ := kindsOf(newScope(Options{}))
	for _, k := range builtin {
		list := k.list()
		if _, ok := list.(meta.ListInterface); !ok {
			t.Errorf("%s: %T is no list", k.Name, list)
		}
		if a, err := k.arrive(&meta.PartialObjectMetadata{}, detached(nil)); err != nil || a.object == nil {
			t.Errorf("%s: lost an object of another type: %v", k.Name, err)
		}
	}
}
