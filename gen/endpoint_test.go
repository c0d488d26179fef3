package gen_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unique"

	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

func TestEndpointMetadata(t *testing.T) {
	id := func(labels, tls string) value.Identity {
		return value.Identity{Namespace: "n", Workload: "w", Cluster: "c", TLSMode: tls, LabelsKey: labels}
	}
	mutual := gen.EndpointForm{MutualTLS: true}
	rows := []struct {
		id             value.Identity
		form           gen.EndpointForm
		workload, mode string
	}{
		{value.Identity{Cluster: "c"}, mutual, ";;;;c", ""},
		{id("", "istio"), mutual, "w;n;w;;c", "istio"},
		{id("", "istio"), gen.EndpointForm{}, "w;n;w;;c", ""},
		{id("", "disabled"), mutual, "w;n;w;;c", ""},
		{id("app=a,version=v", ""), mutual, "w;n;a;v;c", ""},
		{id("app.kubernetes.io/name=k,app=a,version=latest", ""), mutual, "w;n;k;;c", ""},
		{id("app=a,service.istio.io/canonical-name=s,service.istio.io/canonical-revision=r,version=v", ""), mutual,
			"w;n;s;r;c", ""},
		{id("app=a,version=v", ""), gen.EndpointForm{External: "x"}, "w;x;a;v;c", ""},
		{id("app=a,version=v", ""), gen.EndpointForm{External: "x", Name: "e", Revision: "1"}, "w;x;e;1;c", ""},
	}
	for _, r := range rows {
		m := gen.EndpointMetadata(gen.EndpointMetadataKey{Identity: r.id, Form: r.form}).GetFilterMetadata()
		workload := m["istio"].GetFields()["workload"].GetStringValue()
		mode := m["envoy.transport_socket_match"].GetFields()["tlsMode"].GetStringValue()
		if workload != r.workload || mode != r.mode {
			t.Errorf("%+v %+v: %q %q", r.id, r.form, workload, mode)
		}
	}
}

func TestEndpointForm(t *testing.T) {
	external := &value.Service{ServiceKey: value.ServiceKey{Namespace: "x"}, External: true,
		Labels: value.Labels{"service.istio.io/canonical-name": "e"}}
	const plain, mutual = "trafficPolicy: {tls: {mode: DISABLE}}\n", "trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}\n"
	for name, r := range map[string]struct {
		svc          *value.Service
		rule, subset string
		want         gen.EndpointForm
	}{
		"no rule": {&value.Service{}, "", "", gen.EndpointForm{MutualTLS: true}},
		"mutual":  {&value.Service{}, mutual, "", gen.EndpointForm{MutualTLS: true}},
		"plain":   {&value.Service{}, plain, "", gen.EndpointForm{}},
		"a port takes the rule's over": {&value.Service{},
			"trafficPolicy: {tls: {mode: DISABLE}, portLevelSettings: [{port: {number: 80}}]}", "", gen.EndpointForm{}},
		"a port's own": {&value.Service{},
			"trafficPolicy: {portLevelSettings: [{port: {number: 80}, tls: {mode: DISABLE}}]}", "", gen.EndpointForm{}},
		"a subset does not take it over": {&value.Service{}, plain + "subsets: [{name: v1}]", "v1",
			gen.EndpointForm{MutualTLS: true}},
		"a subset's own": {&value.Service{},
			mutual + "subsets: [{name: v1, trafficPolicy: {tls: {mode: SIMPLE}}}]", "v1", gen.EndpointForm{}},
		"outside, with a name of its own": {external, "trafficPolicy: {tls: {mode: SIMPLE}}", "",
			gen.EndpointForm{External: "x", Name: "e"}},
	} {
		if got := gen.EndpointFormOf(gen.ClusterKey{Service: r.svc, Rule: clusterRule(t, r.rule), Subset: r.subset,
			Port: &value.Port{Number: 80}}); got != r.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEndpointFilter(t *testing.T) {
	base := value.Endpoint{Addresses: []string{"10.1.1.1"}, Ports: []value.EndpointPort{{Name: "a", Port: 1},
		{Name: "b", Port: 2}}, Labels: value.Labels{"v": "1"}, Node: "n1"}
	with := func(f func(*value.Endpoint)) *value.Endpoint { e := base; f(&e); return &e }
	same := with(func(*value.Endpoint) {})
	for name, r := range map[string]struct {
		filter gen.EndpointFilter
		e      *value.Endpoint
		want   uint32
	}{
		"its port":     {gen.EndpointFilter{Port: "b"}, same, 2},
		"another port": {gen.EndpointFilter{Port: "c"}, same, 0},
		"subset":       {gen.EndpointFilter{Port: "a", Subset: value.Labels{"v": "1"}}, same, 1},
		"other subset": {gen.EndpointFilter{Port: "a", Subset: value.Labels{"v": "2"}}, same, 0},
		"its node":     {gen.EndpointFilter{Port: "a", Local: true, Node: "n1"}, same, 1},
		"another node": {gen.EndpointFilter{Port: "a", Local: true, Node: "n2"}, same, 0},
		"unhealthy": {gen.EndpointFilter{Port: "a"},
			with(func(e *value.Endpoint) { e.Health = value.Unhealthy }), 1},
		"draining": {gen.EndpointFilter{Port: "a"}, with(func(e *value.Endpoint) { e.Health = value.Draining }),
			0},
		"draining, wanted": {gen.EndpointFilter{Port: "a", Draining: true},
			with(func(e *value.Endpoint) { e.Health = value.Draining }), 1},
		"terminating": {gen.EndpointFilter{Port: "a", Draining: true},
			with(func(e *value.Endpoint) { e.Health = value.Terminating }), 0},
		"name": {gen.EndpointFilter{Port: "a"},
			with(func(e *value.Endpoint) { e.Addresses = []string{"a.example"} }), 0},
		"name, wanted": {gen.EndpointFilter{Port: "a", Names: true},
			with(func(e *value.Endpoint) { e.Addresses = []string{"a.example"} }), 1},
		"socket": {gen.EndpointFilter{Port: "a"},
			with(func(e *value.Endpoint) { e.Addresses = []string{"unix:///s"} }), 1},
		"no address": {gen.EndpointFilter{Port: "a"}, with(func(e *value.Endpoint) { e.Addresses = nil }), 0},
	} {
		if got, ok := r.filter.Select(r.e); got != r.want || ok != (r.want != 0) {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
}

// What is joined from pieces is what encoding the whole message gives.
func TestEncodedEndpoints(t *testing.T) {
	form := gen.EndpointForm{MutualTLS: true}
	want := gen.LocalityHeader(gen.LocalityGroup{Locality: value.Locality{Region: "r", Zone: "z"}, Weight: 9,
		Priority: 2})
	var keys []gen.EndpointKey
	for i, a := range []string{"10.1.1.1", "2001:db8::1", "unix:///tmp/s"} {
		id := value.Identity{Namespace: "n", Workload: fmt.Sprint("w", i/2), Cluster: "c", TLSMode: "istio"}
		k := gen.EndpointKey{Endpoint: &value.Endpoint{Addresses: []string{a}, Identity: unique.Make(id),
			Health: value.Health(i), Weight: uint32(i)}, Port: uint32(i)}
		lb := gen.LbEndpoint(k)
		lb.Metadata = gen.EndpointMetadata(gen.EndpointMetadataKey{Identity: id, Form: form})
		keys, want.LbEndpoints = append(keys, k), append(want.LbEndpoints, lb)
	}
	enc := gen.EndpointEncoder{Form: form}
	chunk := enc.Encode(keys)
	b := append(gen.AssignmentName("a"),
		gen.LocalityField(gen.LocalityGroup{Locality: value.Locality{Region: "r", Zone: "z"}, Weight: 9, Priority: 2},
			len(chunk))...)
	got := &endpointpb.ClusterLoadAssignment{}
	if err := proto.Unmarshal(append(b, chunk...), got); err != nil {
		t.Fatal(err)
	}
	whole := &endpointpb.ClusterLoadAssignment{ClusterName: "a", Endpoints: []*endpointpb.LocalityLbEndpoints{want}}
	if err := whole.ValidateAll(); err != nil {
		t.Error(err)
	}
	if !proto.Equal(got, whole) {
		t.Errorf("got %v\nwant %v", got, whole)
	}
}

func TestWeightsDoNotOverflow(t *testing.T) {
	if gen.AddWeight(math.MaxUint32, 1) != math.MaxUint32 || gen.AddWeight(2, 3) != 5 {
		t.Error("sum of weights")
	}
}

// Each row: the settings, where the client is, and how groups "region/zone/subzone[~score]=weight" rank:
// "priority:weight", "-" if left out.
func TestOrdering(t *testing.T) {
	const groups = "=1 r1/z1/s1=2 r1/z1/s2=3 r1/z2/s1=4 r2/z1/s1=5 r3/z1/s1=6"
	rows := []struct{ name, settings, client, groups, want string }{
		{"nothing", `{}`, "r1/z1/s1", groups, "3:1 0:2 1:3 2:4 3:5 3:6"},
		{"client nowhere", `{}`, "", groups, "0:1 1:2 1:3 1:4 1:5 1:6"},
		{"only far ones", `{}`, "r9/z9/s9", "r1/z1/s1=1 r2/z1/s1=2", "0:1 0:2"},
		{"failover", `{failover: [{from: r2, to: r3}, {from: r1, to: r2}]}`, "r1/z1/s1", groups,
			"4:1 0:2 1:3 2:4 3:5 4:6"},
		{"failover from elsewhere", `{failover: [{from: r2, to: r3}]}`, "r1/z1/s1", groups, "3:1 0:2 1:3 2:4 3:5 3:6"},
		{"by labels", `{failoverPriority: [a, b]}`, "r1/z1/s1", "r1//~0=1 r1//~2=1 r2//~0=1 r2//~1=1",
			"0:1 2:1 0:1 1:1"},
		{"by labels, without holes", `{failoverPriority: [a, b]}`, "r1/z1/s1", "r1//~2=1 r2//~1=1", "1:1 0:1"},
		{"by labels, then failover", `{failoverPriority: [a], failover: [{from: r1, to: r3}]}`, "r1/z1/s1",
			"r1/z1/s1~1=1 r2//~0=1 r3//~0=1 r2//~1=1", "2:1 1:1 0:1 3:1"},
		{"shares", `{distribute: [{from: "r1/z1/*", to: {"r1/z1/*": 80, "r1/z2/*": 20}}]}`, "r1/z1/s1", groups,
			"- 0:32 0:48 0:20 - -"},
		{"narrow shares first", `{distribute: [{from: "r1/*", to: {"r1/*": 50, "r1/z1/s2": 30, "*": 20}}]}`, "r1/z1/s1",
			"r1/z1/s1=1 r1/z1/s2=1 r2//=1", "0:50 0:30 0:20"},
		{"shares for others", `{distribute: [{from: "r2/*", to: {"r2/*": 100}}]}`, "r1/z1/s1", groups,
			"0:1 0:2 0:3 0:4 0:5 0:6"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := &networking.LocalityLoadBalancerSetting{}
			fromYAML(t, r.settings, s)
			settings := istio.Locality(s)
			o := gen.OrderingOf(gen.LocalityRule{Settings: &settings, Failover: true},
				&gen.ClientLocation{Locality: localityOf(r.client)})
			var list []*gen.LocalityGroup
			for text := range strings.FieldsSeq(r.groups) {
				g := &gen.LocalityGroup{}
				text, weight, _ := strings.Cut(text, "=")
				text, score, _ := strings.Cut(text, "~")
				fmt.Sscan(weight, &g.Weight)
				fmt.Sscan(score, &g.Score)
				g.Locality = localityOf(text)
				list = append(list, g)
			}
			o.Rank(list)
			var got []string
			for _, g := range list {
				if g.LeftOut {
					got = append(got, "-")
				} else {
					got = append(got, fmt.Sprintf("%d:%d", g.Priority, g.Weight))
				}
			}
			if out := strings.Join(got, " "); out != r.want {
				t.Errorf("got %s, want %s", out, r.want)
			}
		})
	}
}

func localityOf(text string) value.Locality {
	parts := append(strings.Split(text, "/"), "", "")
	return value.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

// Clients for which a rule says the same have one Ordering: what it does not look at is not in it.
func TestOrderingHoldsWhatItReads(t *testing.T) {
	at := func(region, zone, node string) *gen.ClientLocation {
		return &gen.ClientLocation{Locality: value.Locality{Region: region, Zone: zone}, Node: node, Network: "net",
			Cluster: "c", Labels: value.Labels{"app": node}}
	}
	order := func(traffic, rule string, p *gen.ClientLocation) gen.Ordering {
		policy := gen.PolicyOf(&value.ClusterSettings{}, clusterRule(t, rule), "", 80)
		return gen.OrderingOf(gen.LocalityRuleOf(clusterMesh(t, "").Clusters, &value.Service{TrafficDistribution: traffic},
			policy), p)
	}
	for _, r := range []struct {
		name, traffic, rule string
		a, b                *gen.ClientLocation
		equal               bool
	}{
		{"no outlier detection", "", "", at("r1", "z1", "n1"), at("r2", "z2", "n2"), true},
		{"failover reads the location", "", `{trafficPolicy: {outlierDetection: {}}}`, at("r1", "z1", "n1"),
			at("r1", "z2", "n1"), false},
		{"but not the node", "", `{trafficPolicy: {outlierDetection: {}}}`, at("r1", "z1", "n1"), at("r1", "z1", "n2"),
			true},
		{"same zone", "PreferSameZone", "", at("r1", "z1", "n1"), at("r1", "z1", "n2"), true},
		{"other zone", "PreferSameZone", "", at("r1", "z1", "n1"), at("r1", "z2", "n1"), false},
		{"same node", "PreferSameNode", "", at("r1", "z1", "n1"), at("r1", "z1", "n2"), false},
		{"given value", "",
			`{trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failoverPriority: [app=x]}}}}`,
			at("r1", "z1", "n1"), at("r2", "z1", "n2"), true},
		{"client's label", "",
			`{trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failoverPriority: [app]}}}}`,
			at("r1", "z1", "n1"), at("r1", "z1", "n2"), false},
	} {
		if got := order(r.traffic, r.rule, r.a) == order(r.traffic, r.rule, r.b); got != r.equal {
			t.Errorf("%s: equal %v", r.name, got)
		}
	}
	o := gen.Ordering{Labels: "a=1,b=2"}
	for labels, want := range map[string]int{"a=1,b=2": 0, "a=1": 1, "b=2": 2, "": 2} {
		e := &value.Endpoint{Labels: value.Labels{}}
		for l := range strings.SplitSeq(labels, ",") {
			k, v, _ := strings.Cut(l, "=")
			e.Labels[k] = v
		}
		if got := o.Score(e); got != want {
			t.Errorf("%q: score %d", labels, got)
		}
	}
}
