package ingest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

func TestServicePortProtocol(t *testing.T) {
	app := func(s string) *string { return &s }
	for _, c := range []struct {
		port corev1.ServicePort
		want value.Protocol
	}{
		{corev1.ServicePort{Name: "http", Port: 80}, value.HTTP},
		{corev1.ServicePort{Name: "HTTP-web", Port: 80}, value.HTTP},
		{corev1.ServicePort{Name: "http2-web", Port: 80}, value.HTTP2},
		{corev1.ServicePort{Name: "grpc-web-x", Port: 80}, value.GRPCWeb},
		{corev1.ServicePort{Name: "grpc-x", Port: 80}, value.GRPC},
		{corev1.ServicePort{Name: "https", Port: 443}, value.HTTPS},
		{corev1.ServicePort{Name: "tls-x", Port: 443}, value.TLS},
		{corev1.ServicePort{Name: "tcp", Port: 80}, value.TCP},
		{corev1.ServicePort{Name: "mongo-x", Port: 80}, value.Mongo},
		{corev1.ServicePort{Name: "redis", Port: 80}, value.Redis},
		{corev1.ServicePort{Name: "mysql", Port: 80}, value.MySQL},
		{corev1.ServicePort{Name: "udp-x", Port: 80}, value.UDP},
		{corev1.ServicePort{Name: "http", Port: 80, Protocol: corev1.ProtocolUDP}, value.UDP},
		{corev1.ServicePort{Name: "httpx", Port: 80}, value.Auto},
		{corev1.ServicePort{Port: 80}, value.Auto},
		{corev1.ServicePort{Name: "db", Port: 3306}, value.TCP},
		{corev1.ServicePort{Name: "http", Port: 3306}, value.HTTP},
		{corev1.ServicePort{Name: "tcp", Port: 80, AppProtocol: app("http")}, value.HTTP},
		{corev1.ServicePort{Name: "tcp", Port: 80, AppProtocol: app("kubernetes.io/h2c")}, value.HTTP2},
		{corev1.ServicePort{Name: "tcp", Port: 80, AppProtocol: app("kubernetes.io/ws")}, value.HTTP},
		{corev1.ServicePort{Name: "tcp", Port: 80, AppProtocol: app("kubernetes.io/wss")}, value.HTTPS},
		{corev1.ServicePort{Name: "http", Port: 80, AppProtocol: app("example.com/own")}, value.Auto},
	} {
		if got := servicePort(c.port); got != c.want {
			t.Errorf("%+v: %s, want %s", c.port, got, c.want)
		}
	}
}

func TestWorkloadName(t *testing.T) {
	is := true
	for _, c := range []struct {
		want, generate, kind, owner string
		labels                      map[string]string
	}{
		{want: "pod"},
		{want: "pod", kind: "ReplicaSet", owner: "web-5f"},
		{want: "web", generate: "g", kind: "ReplicaSet", owner: "web-5f",
			labels: map[string]string{"pod-template-hash": "5f"}},
		{want: "web", generate: "g", kind: "ReplicaSet", owner: "web-5f",
			labels: map[string]string{"rollouts-pod-template-hash": "5f"}},
		{want: "web-5f", generate: "g", kind: "ReplicaSet", owner: "web-5f"},
		{want: "db", generate: "g", kind: "StatefulSet", owner: "db"},
		{want: "dc", generate: "g", kind: "ReplicationController", owner: "dc-1",
			labels: map[string]string{"deploymentconfig": "dc"}},
		{want: "job", generate: "g", kind: "Job", owner: "job-28391040"},
		{want: "job-1", generate: "g", kind: "Job", owner: "job-1"},
		{want: "own", generate: "g", kind: "Job", owner: "job-1",
			labels: map[string]string{"service.istio.io/workload-name": "own"}},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", GenerateName: c.generate, Labels: c.labels}}
		if c.owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: c.kind, Name: c.owner, Controller: &is}}
		}
		if got := workloadName(p); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
