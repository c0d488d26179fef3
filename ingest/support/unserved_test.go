package support

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

func shown(found []Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprint(f.Field, " ", f.Security))
	}
	return strings.Join(out, ", ")
}

// TestUnservedFindsWhatIsSet: fields, fields of elements of lists and values of enums, each by its path; nothing of
// what is not set.
func TestUnservedFindsWhatIsSet(t *testing.T) {
	table := New()
	for _, c := range []struct {
		found []Finding
		want  string
	}{
		{table.Unserved(&networking.VirtualService{Http: []*networking.HTTPRoute{{Name: "plain"}, {
			Fault: &networking.HTTPFaultInjection{Delay: &networking.HTTPFaultInjection_Delay{
				HttpDelayType: &networking.HTTPFaultInjection_Delay_ExponentialDelay{ExponentialDelay: durationpb.New(1)}}},
		}}}, "spec"), "spec.http[1].fault.delay.exponentialDelay false"},
		{table.Unserved(&networking.DestinationRule{Subsets: []*networking.Subset{{TrafficPolicy: &networking.TrafficPolicy{
			Tunnel: &networking.TrafficPolicy_TunnelSettings{TargetHost: "x"}}}}}, "spec"),
			"spec.subsets[0].trafficPolicy.tunnel false"},
		{table.Unserved(&networking.Gateway{Servers: []*networking.Server{{Tls: &networking.ServerTLSSettings{
			InsecureSkipVerify: wrapperspb.Bool(true)}}}}, "spec"), "spec.servers[0].tls.insecureSkipVerify false"},
		{table.Unserved(&networking.Sidecar{Ingress: []*networking.IstioIngressListener{{
			Tls: &networking.ServerTLSSettings{}}}}, "spec"), ""},
		{table.Unserved(&networking.ServiceEntry{Resolution: networking.ServiceEntry_DYNAMIC_DNS}, "spec"),
			"spec.resolution false"},
		{table.Unserved(&networking.ServiceEntry{Resolution: networking.ServiceEntry_DNS}, "spec"), ""},
		{table.Unserved(&meshconfig.MeshConfig{AccessLogFile: "/dev/stdout"}, ""), "accessLogFile false"},
		{table.UnservedMeta(map[string]string{"istio.io/workloadController": "x", "other": "x"},
			map[string]string{"istio.io/dataplane-mode": "ambient"}),
			"metadata.annotations[istio.io/workloadController] false, metadata.labels[istio.io/dataplane-mode] false"},
	} {
		if got := shown(c.found); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestUnservedIsBounded: an object that sets thousands of fields without effect is told of with some.
func TestUnservedIsBounded(t *testing.T) {
	g := &networking.Gateway{}
	for range 10 * maxFindings {
		g.Servers = append(g.Servers, &networking.Server{Tls: &networking.ServerTLSSettings{
			InsecureSkipVerify: wrapperspb.Bool(true)}})
	}
	if n := len(New().Unserved(g, "spec")); n != maxFindings {
		t.Errorf("%d findings, want %d", n, maxFindings)
	}
}
