package inject

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestProbedPorts has which probes go to the agent: those of ports that are captured.
func TestProbedPorts(t *testing.T) {
	const include, exclude = "traffic.sidecar.istio.io/includeInboundPorts", "traffic.sidecar.istio.io/excludeInboundPorts"
	for _, c := range []struct {
		name        string
		annotations map[string]string
		port        intstr.IntOrString
		want        string // of the port that the agent asks; empty: the kubelet asks as before
	}{
		{"all are captured", nil, intstr.FromInt32(80), `"port":80`},
		{"by name", nil, intstr.FromString("http"), `"port":8080`},
		{"a number as a text", nil, intstr.FromString("81"), `"port":81`},
		{"a name that nobody has", nil, intstr.FromString("nope"), ""},
		{"the agent itself", nil, intstr.FromInt32(15020), ""},
		{"included", map[string]string{include: "9, 80"}, intstr.FromInt32(80), `"port":80`},
		{"not included", map[string]string{include: "9,81"}, intstr.FromInt32(80), ""},
		{"not included, by name", map[string]string{include: "9"}, intstr.FromString("http"), ""},
		{"included, and excluded too", map[string]string{include: "80", exclude: "80"}, intstr.FromInt32(80), `"port":80`},
		{"all included", map[string]string{include: "*", exclude: "81"}, intstr.FromInt32(80), `"port":80`},
		{"excluded of all", map[string]string{include: "*", exclude: "80"}, intstr.FromInt32(80), ""},
		{"excluded", map[string]string{exclude: "9, 80"}, intstr.FromInt32(80), ""},
		{"excluded, by name", map[string]string{include: "", exclude: "8080"}, intstr.FromString("http"), ""},
	} {
		for kind, handler := range map[string]corev1.ProbeHandler{
			"http": {HTTPGet: &corev1.HTTPGetAction{Port: c.port}}, "tcp": {TCPSocket: &corev1.TCPSocketAction{Port: c.port}},
			"grpc": {GRPC: &corev1.GRPCAction{Port: c.port.IntVal}},
		} {
			if kind == "grpc" && (c.port.Type == intstr.String || c.port.IntVal == 15020) {
				continue
			}
			pod := plainPod()
			pod.Annotations = c.annotations
			app := &pod.Spec.Containers[0]
			app.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
			app.LivenessProbe = &corev1.Probe{ProbeHandler: *handler.DeepCopy()}
			got, err := newInjector(t, settings(t)).Inject(Request{Pod: pod})
			if err != nil {
				t.Fatal(err)
			}
			asked, probe := variable(proxyOf(got.Pod), envProbers), find(got.Pod.Spec.Containers, "app").LivenessProbe
			switch {
			case c.want == "":
				if asked != nil || probe.String() != app.LivenessProbe.String() {
					t.Errorf("%s, %s: the agent is asked: %v %v", c.name, kind, asked, probe)
				}
			case asked == nil || !strings.Contains(asked.Value, c.want) || probe.HTTPGet == nil ||
				probe.HTTPGet.Port.IntVal != 15020 || probe.HTTPGet.Path != "/app-health/app/livez":
				t.Errorf("%s, %s: got %v and %v, want %s", c.name, kind, asked, probe, c.want)
			}
		}
	}
}
