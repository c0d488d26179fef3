package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/report"
)

// tenants is how many share the route configuration of port 80; one of them is to be refused.
const (
	tenants   = 24
	badTenant = 5
)

// lenient are objects that pilotd reads while it is told that Envoys take larger regular expressions than they do: what
// passes its checks is refused by a live Envoy nevertheless.
type lenient struct{ parts.Objects }

func (l lenient) Sources() parts.Sources {
	s := l.Objects.Sources()
	s.Flags = append(s.Flags, "--maxRegexSizeUpstream=2000")
	return s
}

// tooLargeRegex has more instructions than an upstream Envoy takes, and fewer than pilotd is told that it takes.
const tooLargeRegex = "/[a-z]{200}.*"

// tenant is the service of one tenant, in a namespace of its own, and its route, which answers by itself.
type tenant int

func (n tenant) host() string { return fmt.Sprintf("app.tenant-%d.svc.cluster.local", int(n)) }
func (n tenant) vip() string  { return fmt.Sprintf("10.96.2.%d", int(n)+1) }

// service returns the tenant's Service.
func (n tenant) service() string {
	return service(fmt.Sprintf("tenant-%d/app", int(n)), n.vip(), "app: app", "{name: http, port: 80}")
}

// route answers with the round where the path matches the regular expression or is "/".
func (n tenant) route(round int, regex string) string {
	return fmt.Sprintf(`
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: app, namespace: tenant-%d}
spec:
  hosts: [app]
  http:
  - match: [{uri: {regex: %q}}, {uri: {exact: /}}]
    directResponse: {status: 200, body: {string: "tenant %[1]d round %[3]d"}}
`, int(n), regex, round)
}

// others calls f for each tenant but the bad one.
func others(f func(n tenant) error) error {
	for n := range tenant(tenants) {
		if n != badTenant {
			if err := f(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitor is a client pod with an Envoy that asks tenants.
type visitor struct {
	name   string
	envoy  *parts.Envoy
	client *http.Client
}

// visitor starts one.
func (w *world) visitor(p pod, protocol parts.Protocol) visitor {
	w.t.Helper()
	n := w.network.Pod(w.t, p.ip)
	e := parts.StartEnvoy(w.t, n, parts.EnvoySpec{
		Kind: parts.Sidecar, Protocol: protocol, Workload: p.workload(), XDS: w.pilotd.Address(), Secrets: w.secrets,
	})
	e.AwaitReady()
	return visitor{p.name, e, n.Client()}
}

// sees returns nil if the tenant's route answers with that round.
func (v visitor) sees(n tenant, round int) error {
	a, err := parts.Ask(v.client, "http://"+n.vip()+":80/", n.host())
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("tenant %d round %d", int(n), round); a.Body != want {
		return fmt.Errorf("%s: %s answers %d %q, want %q", v.name, n.host(), a.Status, a.Body, want)
	}
	return nil
}

// refusals returns how many answers about the routes of port 80 the Envoy has refused. (An answer counts for each of
// its resources.)
func (v visitor) refusals() (int, error) {
	stats, err := v.envoy.Stats(`rds\.80\.update_rejected$`)
	if err != nil || len(stats) != 1 {
		return 0, fmt.Errorf("%s: %v: %w", v.name, stats, err)
	}
	for _, n := range stats {
		return n, nil
	}
	return 0, nil
}

// refusedByClients returns the problems that clients have brought about.
func refusedByClients(p *parts.Pilotd) (out []report.Standing, err error) {
	page, err := p.Debug("/debug/rejectionsz")
	if err != nil {
		return nil, err
	}
	var all []report.Standing
	if err := json.Unmarshal([]byte(page), &all); err != nil {
		return nil, fmt.Errorf("%w: %.300s", err, page)
	}
	for _, s := range all {
		if s.Cause == report.ClientRefused {
			out = append(out, s)
		}
	}
	return out, nil
}

// accused returns nil if the bad tenant's VirtualService and nothing else is said to be refused, in the words of those
// clients.
func accused(p *parts.Pilotd, clients ...visitor) error {
	all, err := refusedByClients(p)
	if err != nil {
		return err
	}
	said := 0
	for _, s := range all {
		if s.Key.Namespace != fmt.Sprintf("tenant-%d", badTenant) || s.Key.Name != "app" {
			return fmt.Errorf("%v is accused: %+v", s.Key, s)
		}
		for _, c := range s.Clients {
			if strings.Contains(c.Message, "program size") && slices.ContainsFunc(clients, func(v visitor) bool {
				return strings.Contains(c.Proxy, v.name)
			}) {
				said++
			}
		}
	}
	if said == 0 {
		return fmt.Errorf("no client says why: %+v", all)
	}
	return nil
}

// visitors are visitors that all see the same, or shall.
type visitors []visitor

// see returns a check that all of them see that round of all tenants but the bad one.
func (c visitors) see(round int) func() error {
	return func() error {
		return c.each(func(v visitor) error { return others(func(n tenant) error { return v.sees(n, round) }) })
	}
}

// each calls f for each visitor until one fails.
func (c visitors) each(f func(v visitor) error) error {
	for _, v := range c {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// refusals returns how many answers each of them has refused.
func (c visitors) refusals(t *testing.T) (out []int) {
	t.Helper()
	for _, v := range c {
		n, err := v.refusals()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// A live Envoy refuses what has passed the door and the checks: pilotd finds the object, in a few answers, and keeps
// its last good version; the edits of all others get through, and a proxy that starts in the middle has all of them.
// After a restart pilotd knows of no good version: halving finds the object again. It heals when it is fixed.
func TestRefusalHurtsOnlyItself(t *testing.T) {
	mesh := baseMesh()
	for n := range tenant(tenants) {
		mesh += n.service() + n.route(0, "/x.*")
	}
	w := newWorld(t, func(t *testing.T) parts.Objects { return lenient{inDirectory(t)} }, mesh)
	all := visitors{w.visitor(clientDelta(), parts.Delta), w.visitor(clientSotW(), parts.SotW)}
	edit := func(round int) {
		edits := ""
		_ = others(func(n tenant) error { edits += n.route(round, "/y.*"); return nil })
		w.objects.Apply(edits)
	}
	parts.Eventually(t, "all tenants answer", all.see(0))

	w.objects.Apply(tenant(badTenant).route(1, tooLargeRegex))
	parts.Eventually(t, "the bad object is accused", func() error { return accused(w.pilotd, all...) })
	edit(1)
	parts.Eventually(t, "the others' edits are there", all.see(1))
	if err := all.each(func(v visitor) error { return v.sees(badTenant, 0) }); err != nil {
		t.Errorf("the last good version of the refused object: %v", err)
	}

	all = append(all, w.visitor(pod{"client-late", "shop", "10.244.1.9", "app: client"}, parts.Delta))
	parts.Eventually(t, "a proxy that starts now has all others", all.see(1))
	before := all.refusals(t)
	for i, n := range before {
		if n > 3 {
			t.Errorf("%s has refused %d answers for one object that changed", all[i].name, n)
		}
	}

	w.pilotd.Kill()
	w.pilotd.Start()
	edit(2)
	parts.Eventually(t, "after a restart the bad object is accused", func() error { return accused(w.pilotd, all...) })
	parts.Eventually(t, "after a restart the others' edits are there", all.see(2))
	for i, n := range all.refusals(t) {
		if n -= before[i]; n > 2*5+4 { // log2(24) is below 5
			t.Errorf("%s has refused %d answers for one object of %d", all[i].name, n, tenants)
		} else {
			t.Logf("%s has refused %d answers, and %d before the restart", all[i].name, n, before[i])
		}
	}

	w.objects.Apply(tenant(badTenant).route(3, "/z.*"))
	parts.Eventually(t, "the object heals", func() error {
		if standing, err := refusedByClients(w.pilotd); err != nil || len(standing) > 0 {
			return fmt.Errorf("%v %+v", err, standing)
		}
		return all.each(func(v visitor) error { return v.sees(badTenant, 3) })
	})
}
