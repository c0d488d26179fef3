package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// rule returns a DestinationRule with a subset of its own name: "namespace/name host exportTo,… label=value", the last
// two optional ("-").
func rule(text string) *value.DestinationRule {
	f := append(strings.Fields(text), "-", "-")
	ns, name, _ := strings.Cut(f[0], "/")
	spec := &networking.DestinationRule{Host: f[1], Subsets: []*networking.Subset{{Name: name}}}
	if f[2] != "-" {
		spec.ExportTo = strings.Split(f[2], ",")
	}
	export := value.NewVisibility(spec.ExportTo, nil, ns)
	if k, v, ok := strings.Cut(f[3], "="); ok {
		spec.WorkloadSelector = &apitype.WorkloadSelector{MatchLabels: map[string]string{k: v}}
		export = value.NewVisibility([]string{"."}, nil, ns)
	}
	return &value.DestinationRule{Meta: value.Meta{Namespace: ns, Name: name}, DestinationPolicy: istio.Policy(spec),
		Export: export}
}

// subsets returns those of the rule under which a client calls books.shop.example.
func subsets(s *snapshot.Snapshot, client string, labels value.Labels) string {
	d := s.RulesFor(client, &value.Service{ServiceKey: value.ServiceKey{Host: "books.shop.example",
		Namespace: "shop"}}).Select(client, labels.Contains)
	if d == nil {
		return ""
	}
	var out []string
	for _, s := range d.Subsets {
		out = append(out, s.Name)
	}
	return strings.Join(out, "+")
}

// Each row is the rules, and what clients in shop, in b, in the root namespace and in b with the label app=x are under.
func TestRulesFor(t *testing.T) {
	const host = "books.shop.example"
	for name, r := range map[string]struct {
		rules []string
		want  string
	}{
		"none":                                {nil, "|||"},
		"the service's":                       {[]string{"shop/a " + host}, "a|a|a|a"},
		"the client's first":                  {[]string{"shop/a " + host, "b/c " + host}, "a|c|a|c"},
		"the root namespace's last":           {[]string{"shop/a *.shop.example", "root/r " + host}, "a|a|a|a"},
		"its own of the root namespace first": {[]string{"shop/a " + host, "root/r " + host + " ."}, "a|a|r|a"},
		"merged":                              {[]string{"shop/a " + host, "shop/b " + host}, "a+b|a+b|a+b|a+b"},
		"only for itself":                     {[]string{"shop/a " + host + " ."}, "a|||"},
		"only for others":                     {[]string{"shop/a " + host + " b", "root/r *.example"}, "r|a|r|a"},
		"one for each":                        {[]string{"shop/a " + host + " b", "shop/z " + host + " ."}, "z|a||a"},
		"the narrowest that is exported":      {[]string{"shop/a " + host + " root", "shop/w *.shop.example"}, "w||a|"},
		"different exportTo: the last":        {[]string{"shop/a " + host, "shop/b " + host + " *"}, "b|b|b|b"},
		"more exportTo is merged": {[]string{"shop/a " + host + " .", "shop/b " + host + " .,b"},
			"a+b|b||b"},
		"selector":        {[]string{"b/x " + host + " - app=x", "b/g " + host}, "|g||x"},
		"selector, alike": {[]string{"b/x " + host + " - app=x", "b/g " + host + " ."}, "|g||x+g"},
		"selector alone":  {[]string{"b/x " + host + " - app=x", "shop/a " + host}, "a||a|x"},
	} {
		b := &snapshottest.Batch{Mesh: istio.Mesh(&meshconfig.MeshConfig{RootNamespace: "root"}, "", ""),
			DestinationRules: map[value.ObjectKey]*value.DestinationRule{}}
		for _, text := range r.rules {
			d := rule(text)
			b.DestinationRules[value.ObjectKey{Kind: value.KindDestinationRule, Namespace: d.Namespace,
				Name: d.Name}] = d
		}
		builder := snapshot.NewBuilder(nil)
		snapshottest.Apply(builder, b)
		s := builder.View().Snapshot
		got := strings.Join([]string{subsets(s, "shop", nil), subsets(s, "b", nil), subsets(s, "root", nil),
			subsets(s, "b", value.Labels{"app": "x"})}, "|")
		if got != r.want {
			t.Errorf("%s: got %s, want %s", name, got, r.want)
		}
	}
}

// What the mesh's own failoverPriority names counts as read.
func TestMeshPriorityReadsLabels(t *testing.T) {
	builder := snapshot.NewBuilder(nil)
	set := &networking.LocalityLoadBalancerSetting{FailoverPriority: []string{"tier", "kubernetes.io/hostname"}}
	snapshottest.Apply(builder, &snapshottest.Batch{Mesh: istio.Mesh(&meshconfig.MeshConfig{LocalityLbSetting: set}, "", "")})
	s := builder.View().Snapshot
	got := s.LabelsRead("shop", value.Labels{"tier": "a", "app": "x"})
	if fmt.Sprint(got) != "map[tier:a]" || !s.NodeMatters() {
		t.Errorf("reads %v, node %v", got, s.NodeMatters())
	}
}
