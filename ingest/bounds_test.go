package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestHostSetIsHostMatches holds hostSet against the rule that it stands for, asked for each host of the list.
func TestHostSetIsHostMatches(t *testing.T) {
	host := rapid.SampledFrom([]string{"a.b", "x.a.b", "xa.b", "b", "*.b", "*.a.b", "*a.b", "*", "*.x.a.b", "c", "c.n",
		"c.n.svc", ".b"})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(host, 0, 6, rapid.ID[string]).Draw(t, "hosts")
		name := host.Draw(t, "name")
		s := newHostSet(list)
		want := false
		for _, p := range list {
			want = want || value.HostMatches(p, name) || !strings.Contains(p, ".") && strings.HasPrefix(name, p+".n.")
		}
		if got := s.covers(name, "n"); got != want {
			t.Fatalf("%v covers %q: %v, want %v", list, name, got, want)
		}
		for i, h := range list {
			overlaps := false
			for j, o := range list {
				overlaps = overlaps || i != j && strings.HasPrefix(o, "*") && value.HostMatches(o, h)
			}
			if _, got := s.wildcard(h, i); got != overlaps {
				t.Fatalf("%v: another wildcard covers %q: %v, want %v", list, h, got, overlaps)
			}
		}
	})
}

// TestWhatMultipliesIsBounded: lists that multiply are refused with the numbers; what is as large alone is not.
func TestWhatMultipliesIsBounded(t *testing.T) {
	hosts := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("h%d.example.com", i))
		}
		return out
	}
	virtual := func(n, routes int) any {
		v := &clientnet.VirtualService{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}}
		v.Spec.Hosts = hosts(n)
		for range routes {
			v.Spec.Http = append(v.Spec.Http, &networking.HTTPRoute{
				Match: []*networking.HTTPMatchRequest{{
					Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: "/"}}}},
				Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a"}}},
			})
		}
		return v
	}
	entry := func(n, ports int) any {
		e := &clientnet.ServiceEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}}
		e.Spec.Hosts, e.Spec.Resolution = hosts(n), networking.ServiceEntry_DNS
		for i := range ports {
			e.Spec.Ports = append(e.Spec.Ports, &networking.ServicePort{Number: uint32(i + 1), Name: fmt.Sprint("p", i),
				Protocol: "HTTP"})
		}
		return e
	}
	for _, c := range []struct {
		kind   value.Kind
		object any
		field  string
	}{
		{value.KindVirtualService, virtual(1, 20_000), ""}, {value.KindVirtualService, virtual(20_000, 1), ""},
		{value.KindVirtualService, virtual(300, 300), "spec.hosts"},
		{value.KindServiceEntry, entry(256, 64), ""}, {value.KindServiceEntry, entry(256, 65), "spec.ports"},
		{value.KindServiceEntry, entry(257, 1), "spec.hosts"}, {value.KindServiceEntry, entry(1, 257), "spec.ports"},
	} {
		field := ""
		if p := verdict(Event{Key: value.ObjectKey{Kind: c.kind, Namespace: "n", Name: "x"},
			Object: c.object}); p != nil {
			field = p.field
		}
		if field != c.field {
			t.Errorf("%s: refused for %q, want %q", c.kind, field, c.field)
		}
	}
}

// TestConditionsAreBounded: the values of conditions times the sources and operations that have them, of all rules of
// an AuthorizationPolicy together.
func TestConditionsAreBounded(t *testing.T) {
	rules := func(n, sources, operations, values int) []*security.Rule {
		w := &security.Condition{Key: "source.namespace"}
		for range values {
			w.NotValues = append(w.NotValues, "a")
		}
		r := &security.Rule{When: []*security.Condition{w}}
		for range sources {
			r.From = append(r.From, &security.Rule_From{Source: &security.Source{Namespaces: []string{"b"}}})
		}
		for range operations {
			r.To = append(r.To, &security.Rule_To{Operation: &security.Operation{Methods: []string{"GET"}}})
		}
		return slices.Repeat([]*security.Rule{r}, n)
	}
	for _, c := range []struct {
		rules []*security.Rule
		ok    bool
	}{
		{rules(1, 0, 0, 1<<16), true}, {rules(1, 0, 0, 1<<16+1), false}, {rules(1, 1<<10, 0, 1<<6), true},
		{rules(1, 1<<10, 1, 1<<6), false}, {rules(1<<6, 1<<4, 1<<4, 1<<5), true}, {rules(1<<7, 1<<4, 1<<4, 1<<5), false},
		{rules(1, 1<<17, 1<<17, 0), true},
	} {
		bounds := &check{}
		if bounds.ruleParts(c.rules); (bounds.first == nil) != c.ok {
			t.Errorf("%d rules, the first with %d sources: %v", len(c.rules), len(c.rules[0].From), bounds.first)
		}
	}
}
