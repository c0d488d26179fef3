package snapshot_test

import (
	"strings"
	"testing"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestAsked: policies of a workload ask the one server that they name, if its service is there for them.
func TestAsked(t *testing.T) {
	service := func(namespace, host string, exportTo ...string) *value.Service {
		return &value.Service{ServiceKey: value.ServiceKey{Host: host, Namespace: namespace},
			Export: value.NewVisibility(exportTo, nil, namespace), Ports: []*value.Port{{Number: 80}}}
	}
	b := snapshot.NewBuilder(nil)
	batch := &snapshottest.Batch{Objects: map[value.ObjectKey]value.Value{},
		Services: map[value.ServiceKey]*value.Service{},
		Mesh: &value.Mesh{RootNamespace: "root", Access: &value.AccessSettings{Providers: []*value.AuthorizationProvider{
			{Name: "good", Host: "one", Port: 80}, {Name: "port", Host: "one", Port: 81},
			{Name: "gone", Host: "none", Port: 80}, {Name: "hidden", Host: "hidden", Port: 80},
			{Name: "twice", Host: "two", Port: 80}, {Name: "named", Namespace: "b", Host: "two", Port: 80},
			{Name: "elsewhere", Namespace: "c", Host: "two", Port: 80}, {Name: "bad", Problem: "is bad"},
		}}}}
	for _, s := range []*value.Service{service("a", "one"), service("a", "two"), service("b", "two"),
		service("a", "hidden", ".")} {
		batch.Services[s.ServiceKey] = s
	}
	names := []string{"good", "port", "gone", "hidden", "twice", "named", "elsewhere", "bad", "unknown"}
	add := func(app, name, provider string, edit func(*value.AuthorizationPolicy)) {
		p := &value.AuthorizationPolicy{Meta: value.Meta{Namespace: "shop", Name: name}, Action: value.CustomAction,
			Provider: provider, PolicyTarget: value.PolicyTarget{Labels: value.Labels{"app": app}}}
		if edit != nil {
			edit(p)
		}
		batch.Objects[p.Object()] = p
	}
	for _, n := range names {
		add(n, n, n, nil)
	}
	add("both", "both-1", "good", nil)
	add("both", "both-2", "named", nil)
	add("same", "same-1", "good", nil)
	add("same", "same-2", "good", nil)
	add("tried", "tried", "unknown", func(p *value.AuthorizationPolicy) { p.DryRun = true })
	add("denied", "denied", "", func(p *value.AuthorizationPolicy) { p.Action = value.DenyAction })
	snapshottest.Apply(b, batch)
	for app, want := range map[string]string{"good": "", "same": "", "named": "", "port": "no port 81",
		"gone": "no service none", "hidden": "not exported", "twice": "several namespaces", "elsewhere": "no service two",
		"bad": "is bad", "unknown": "no extension provider", "both": "several extension providers: good, named"} {
		got := b.View().Snapshot.PoliciesFor("shop", value.Labels{"app": app}).Asked
		if (got.Provider != nil) != (want == "") || !strings.Contains(got.Problem, want) {
			t.Errorf("%s: %v", app, got)
		}
	}
	for _, app := range []string{"tried", "denied", "nobody"} {
		if got := b.View().Snapshot.PoliciesFor("shop", value.Labels{"app": app}).Asked; got != (value.Asked{}) {
			t.Errorf("%s asks %v", app, got)
		}
	}
}
