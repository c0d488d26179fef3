package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/report"
)

// TestUnresolvedDelegatesAreReported: a route that names a delegate which is not there, has hosts of its own, or is not
// exported to the root, is told of on the root, until the delegate can be used; and no more, once the root is gone.
func TestUnresolvedDelegatesAreReported(t *testing.T) {
	reports := report.New(report.Options{Log: testLog(t)})
	s := NewStore(newKeeper(), Settings{Reports: reports}, "dir")
	apply := func(name, spec string) {
		t.Helper()
		s.Apply(decode(t, "dir", "kind: VirtualService\nmetadata: {name: "+name+", namespace: shop}\nspec: "+spec))
	}
	standing := func(want ...string) {
		t.Helper()
		var got []string
		for _, p := range reports.All() {
			reason, rest, _ := strings.Cut(p.Reason, "; ")
			if p.Cause != report.Unresolved || p.Source != "dir" || !strings.Contains(rest, "404") {
				t.Errorf("%+v", p)
			}
			got = append(got, fmt.Sprint(p.Key.Name, " ", p.Field, ": ", reason))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	const part = "{http: [{route: [{destination: {host: web}}]}]}"
	apply("root", `{hosts: [a.example.com], http: [{match: [{uri: {prefix: /x}}], delegate: {name: part}}, {delegate: {name: far, namespace: far}}]}`)
	standing() // others may be still to come
	s.Synced("dir")
	missing, far := "root spec.http[0].delegate: there is no VirtualService shop/part",
		"root spec.http[1].delegate: there is no VirtualService far/far"
	standing(missing, far)
	apply("part", part)
	standing(far)
	apply("part", "{hosts: [b.example.com], http: [{route: [{destination: {host: web}}]}]}")
	standing("root spec.http[0].delegate: VirtualService shop/part has hosts of its own, and so is no delegate", far)
	apply("part", part)
	s.Apply(decode(t, "dir", "kind: VirtualService\nmetadata: {name: far, namespace: far}\nspec: {exportTo: [.], "+
		part[1:]))
	standing("root spec.http[1].delegate: VirtualService far/far is not exported to namespace shop")
	s.Apply(decode(t, "dir", "kind: VirtualService\nmetadata: {name: far, namespace: far}\nspec: "+part))
	standing()
	gone := decode(t, "dir", "kind: VirtualService\nmetadata: {name: part, namespace: shop}\nspec: "+part)
	gone[0].Object = nil
	s.Apply(gone)
	standing(missing)
	gone = decode(t, "dir", "kind: VirtualService\nmetadata: {name: root, namespace: shop}\nspec: "+part)
	gone[0].Object = nil
	s.Apply(gone)
	standing()
}
