package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
	"github.com/pilotd/pilotd/xdstype"
)

// authorizationOf returns a policy for one app, or for all where i is negative, in a namespace.
func authorizationOf(namespace, name string, i int) *value.AuthorizationPolicy {
	p := &value.AuthorizationPolicy{Meta: value.Meta{Namespace: namespace, Name: name}, Action: value.DenyAction}
	if i >= 0 {
		p.Labels = value.Labels{"app": fmt.Sprint("app-", i)}
	}
	return p
}

func (m *policed) authorize(policies ...*value.AuthorizationPolicy) {
	b := &snapshottest.Batch{Objects: map[value.ObjectKey]value.Value{}}
	for _, p := range policies {
		b.Objects[p.Object()] = p
	}
	snapshottest.Apply(m.builder, b)
	m.settle()
}

// authorized returns the proxies whose virtualInbound names a policy.
func (m *policed) authorized(name string) (out []int) {
	for id, set := range m.sets() {
		e, ok := set.Sections.Of(xdstype.Listener).Get("virtualInbound")
		if ok && strings.Contains(string(e.Message()), name) {
			out = append(out, int(id))
		}
	}
	slices.Sort(out)
	return out
}

// TestAuthorizationReachesWhomItSelects: a policy is for its workloads alone, that of the root namespace for those of
// all namespaces; an edit gives other resources to those whom it selects, and to nobody else.
func TestAuthorizationReachesWhomItSelects(t *testing.T) {
	m := newPoliced(t, 6)
	root := testMesh(0).RootNamespace
	elsewhere := authorizationOf("shop", "elsewhere", -1)
	elsewhere.Elsewhere = true
	m.authorize(authorizationOf("shop", "one", 2), authorizationOf(root, "picked", 3), elsewhere,
		authorizationOf("other", "foreign", -1))
	for name, want := range map[string][]int{"policy[one]": {2}, "policy[picked]": {3}, "policy[elsewhere]": nil,
		"policy[foreign]": nil} {
		if got := m.authorized(name); !slices.Equal(got, want) {
			t.Errorf("%s is in the listeners of %v, want %v", name, got, want)
		}
	}
	before, bases := m.sets(), m.planner.Counts().Bases
	edited := authorizationOf("shop", "one", 2)
	edited.Action = value.AllowAction
	m.authorize(edited)
	for id, set := range m.sets() {
		if (set != before[id]) != (id == 2) {
			t.Errorf("an edit of a policy for 2: the resources of %d differ: %v", id, set != before[id])
		}
	}
	m.authorize(authorizationOf(root, "all", -1))
	if got := m.authorized("policy[all]"); len(got) != 6 {
		t.Errorf("a policy of the root namespace is in the listeners of %v", got)
	}
	if got := m.planner.Counts().Bases; got != bases {
		t.Errorf("%d bases became %d", bases, got)
	}
}

// TestOneOfManyPolicies is invariant I15 for AuthorizationPolicies: with one for each of 1,000 workloads all have the
// same outbound configuration, and whatever becomes of one gives other resources to whom it selects or selected, and
// nothing at all to anybody else.
func TestOneOfManyPolicies(t *testing.T) {
	const n = 1000
	m := newPoliced(t, n)
	before := m.planner.Counts()
	var all []*value.AuthorizationPolicy
	for i := range n {
		all = append(all, authorizationOf("shop", fmt.Sprint("p", i), i))
	}
	m.authorize(all...)
	if after := m.planner.Counts(); after.Bases != before.Bases || after.Classes != n {
		t.Errorf("%d bases and %d classes became %d and %d", before.Bases, before.Classes, after.Bases, after.Classes)
	}
	sets := m.sets()
	moved := authorizationOf("shop", "p7", 8)
	allows := *moved
	allows.Action = value.AllowAction
	tokens := &value.RequestAuthentication{Meta: value.Meta{Namespace: "shop", Name: "t"},
		PolicyTarget: value.PolicyTarget{Labels: value.Labels{"app": "app-9"}}, Rules: []value.TokenRule{{Issuer: "i"}}}
	for _, c := range []struct {
		name   string
		object value.Value
		gone   bool
		whom   []int
	}{
		{"for another workload", moved, false, []int{7, 8}}, {"of another action", &allows, false, []int{8}},
		{"the same", &allows, false, nil}, {"a new one", authorizationOf("shop", "new", 7), false, []int{7}},
		{"of nobody", authorizationOf("shop", "nobody", n), false, nil}, {"gone", moved, true, []int{8}},
		{"for tokens", tokens, false, []int{9}}, {"for peers", policyOf(10, value.Strict), false, []int{10}},
		{"in a namespace without workloads", authorizationOf("other", "p0", -1), false, nil},
	} {
		b := &snapshottest.Batch{Objects: map[value.ObjectKey]value.Value{c.object.Object(): c.object}}
		if c.gone {
			b.Objects[c.object.Object()] = nil
		}
		snapshottest.Apply(m.builder, b)
		m.settle()
		var got []int
		now := m.sets()
		for id, set := range now {
			if set != sets[id] {
				got = append(got, int(id))
			}
		}
		slices.Sort(got)
		if sets = now; !slices.Equal(got, c.whom) {
			t.Errorf("a policy %s: the resources of %v differ, want %v", c.name, got, c.whom)
		}
	}
}

// TestPoliciesReachGateways: the policies that select a router, by its labels or as a Gateway's, are in its listeners;
// an edit of one is, too.
func TestPoliciesReachGateways(t *testing.T) {
	m := newPoliced(t, 1)
	gw := &value.Gateway{Meta: value.Meta{Namespace: "shop", Name: "gw"}, GatewaySettings: value.GatewaySettings{
		Servers: []*value.Server{{Hosts: []value.ServerHost{{Namespace: "*", Host: "a.example"}},
			Port: value.ListenerPort{Number: 80, Name: "http", Protocol: value.HTTP}}}}}
	snapshottest.Apply(m.builder, &snapshottest.Batch{Gateways: map[value.ObjectKey]*value.Gateway{gw.Object(): gw}})
	p := &proxy.Proxy{ID: "edge", Namespace: "shop", Addresses: []string{"10.9.9.9"}, ClusterID: "Kubernetes",
		Labels: proxy.PackLabels(value.Labels{"app": "edge", value.GatewayNameLabel: "named"})}
	p.Traits.IPv4, p.Traits.Type = true, value.Router
	m.planner.Attach(100, p)
	picked, named, other := authorizationOf("shop", "picked", -1), authorizationOf("shop", "named", -1),
		authorizationOf("shop", "other", 0)
	picked.Labels, named.Gateways = value.Labels{"app": "edge"}, []string{"named"}
	m.authorize(picked, named, other)
	has := func(text string) bool {
		e, ok := m.sets()[100].Sections.Of(xdstype.Listener).Get("0.0.0.0_80")
		return ok && strings.Contains(string(e.Message()), text)
	}
	if !has("policy[picked]") || !has("policy[named]") || has("policy[other]") {
		t.Errorf("in the listener: picked %v, named %v, other %v", has("policy[picked]"), has("policy[named]"),
			has("policy[other]"))
	}
	edited := *picked
	edited.Rules = []value.AuthorizationRule{{Sources: [][]value.AccessCondition{{}},
		Operations: [][]value.AccessCondition{{{Attribute: value.RequestPath, Values: []string{"/edited"}}}}}}
	m.authorize(&edited)
	if !has("/edited") {
		t.Error("an edit is not in the listener")
	}
	b := &snapshottest.Batch{Objects: map[value.ObjectKey]value.Value{edited.Object(): nil}}
	snapshottest.Apply(m.builder, b)
	m.settle()
	if has("policy[picked]") || !has("policy[named]") {
		t.Error("a policy that is gone is in the listener")
	}
}
