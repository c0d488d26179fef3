package secure

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilotd/pilotd/secrets"
)

// A client that asks for secrets by names of others, of nothing, or without end gets what is its own alone, and each
// reason is counted and told of no more than there is room for.
func TestHostileNames(t *testing.T) {
	for _, sotw := range []bool{false, true} {
		inHouse(t, func(h *house) { hostileNames(h, sotw) }, func(h *house) { h.rights = newGrants("shop/lister") })
	}
}

func hostileNames(h *house, sotw bool) {
	g := newGate(h, nil)
	for _, name := range []string{"shop/a", "bank/a", "istio-system/cacerts"} {
		space, secret, _ := strings.Cut(name, "/")
		g.rotate(space, secret)
	}
	before := h.refusals()
	c, denied := g.connect("shop", "lister", false, sotw), g.connect("shop", "other", false, sotw)
	denied.subscribe([]string{"kubernetes://a", "kubernetes://shop/a", "kubernetes-gateway://shop/a"}, nil)
	foreign := []string{"kubernetes://bank/a", "kubernetes-gateway://bank/a", "kubernetes://bank/a-cacert",
		"kubernetes://istio-system/cacerts", "configmap://istio-system/istio-ca-root-cert", "kubernetes://../a",
		"kubernetes://SHOP/a", "kubernetes:// shop/a"}
	bad := []string{"kubernetes://shop/../bank/a", "kubernetes://../bank/a", "kubernetes:///bank/a", "kubernetes://", "a",
		"kubernetes://shop/a/b", "secret://shop/a", "default", "ROOTCA", "file-cert:/a~/b", "configmap://a", "//a",
		"KUBERNETES://a", "kubernetes-gateway://a", "kubernetes://-cacert", "invalid://x"}
	missing := []string{"configmap://shop/a", "kubernetes://bank%2Fa", "kubernetes://a\x00", "kubernetes://..",
		"kubernetes://b\n", "kubernetes://ａ"}
	c.subscribe(append(append(append([]string{"kubernetes://a"}, foreign...), bad...), missing...), nil)
	synctest.Wait()
	h.expectKeys(c, "kubernetes://a")
	h.expectKeys(denied)
	h.expectRefusals(before, map[secrets.Refusal]int{secrets.Foreign: len(foreign), secrets.BadName: len(bad),
		secrets.Missing: len(missing), secrets.NoRight: 3})
	if n := h.streams.Secrets.Stats().Objects; n > len(missing)+1 {
		h.t.Errorf("%d objects are held", n)
	}

	many := make([]string, 30_000)
	for i := range many {
		many[i] = fmt.Sprint("kubernetes://many-", i)
	}
	before = h.refusals()
	greedy := g.connect("shop", "lister", false, sotw)
	greedy.subscribe(append(many, "kubernetes://a"), nil)
	synctest.Wait()
	h.expectKeys(greedy, "kubernetes://a") // names are looked at in their order
	h.expectKeys(c, "kubernetes://a")
	const held, looked = 10_000, 20_000
	if n := h.streams.Secrets.Stats().Objects; n > held {
		h.t.Errorf("%d objects are held, want at most %d", n, held)
	}
	after := h.refusals()
	if n := after[secrets.TooMany] - before[secrets.TooMany]; n < len(many)-held {
		h.t.Errorf("%d names are counted that are too many, of %d; %d objects are held, %d names looked at", n, len(many),
			held, looked)
	}
	for _, c := range g.clients {
		c.close()
	}
	synctest.Wait()
	if s := h.streams.Secrets.Stats(); s.Objects+s.Views != 0 {
		h.t.Errorf("left behind: %+v", s)
	}
}

// expectKeys fails unless a gateway has keys by these names alone.
func (h *house) expectKeys(c *gateway, names ...string) {
	h.t.Helper()
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if len(c.got) != len(names) {
		h.t.Errorf("it has %d keys, want %q", len(c.got), names)
	}
	for _, name := range names {
		if c.got[name] == "" {
			h.t.Errorf("it has no key of %s", name)
		}
	}
}

// refusals returns the metric, by reason.
func (h *house) refusals() (out [secrets.NumRefusals]int) {
	h.t.Helper()
	for r := range out {
		out[r] = int(h.sample("pilotd_sds_refused_total", secrets.Refusal(r).String()))
	}
	return out
}

// expectRefusals fails unless these many more are counted than before.
func (h *house) expectRefusals(before [secrets.NumRefusals]int, want map[secrets.Refusal]int) {
	h.t.Helper()
	for r, n := range h.refusals() {
		if got := n - before[r]; got != want[secrets.Refusal(r)] {
			h.t.Errorf("%s is counted %d times, want %d", secrets.Refusal(r), got, want[secrets.Refusal(r)])
		}
	}
}

// sample returns the value of a metric for a reason.
func (h *house) sample(name, reason string) float64 {
	h.t.Helper()
	var of prometheus.Gatherer = h.streams.Metrics.Registry
	families, err := of.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	h.t.Fatalf("%s{reason=%q} is not counted", name, reason)
	return 0
}
