package secrets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func expect(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// What one gets is of its own namespace; everything else is left out at once, with a reason.
func TestNamesOfOthers(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		a := newAuthority(t)
		cert, key := a.issue(t, ecKey(t), time.Hour)
		h.put("edge", Data{"tls.crt": cert, "tls.key": key, "ca.crt": a.pem})
		h.put("beside", Data{"tls.crt": cert, "tls.key": key})
		h.put("beside-cacert", Data{"cacert": a.pem})
		h.files.Set(Object{Namespace: "bank", Name: "vault"}, Data{"tls.crt": cert, "tls.key": key, "ca.crt": a.pem})
		h.files.Set(Object{ConfigMap: true, Namespace: "shop", Name: "roots"}, Data{"ca.crt": a.pem})
		h.files.Set(Object{ConfigMap: true, Namespace: "bank", Name: "roots"}, Data{"ca.crt": a.pem})
		v := h.open(who("gateway"), "kubernetes://edge", "kubernetes://shop/edge", "kubernetes-gateway://shop/edge",
			"kubernetes://edge-cacert", "kubernetes://beside-cacert", "configmap://shop/roots", "configmap://shop/roots-cacert",
			"kubernetes://bank/vault", "kubernetes://bank/vault-cacert", "kubernetes-gateway://bank/vault",
			"configmap://bank/roots", "kubernetes://vault", "configmap://edge", "kubernetes://", "invalid://", "default", "*")
		expect(t, "gets", v.has(), "configmap://shop/roots", "configmap://shop/roots-cacert",
			"kubernetes-gateway://shop/edge", "kubernetes://beside-cacert", "kubernetes://edge", "kubernetes://edge-cacert",
			"kubernetes://shop/edge")
		for resource, want := range map[string]string{
			"kubernetes://bank/vault": `it is of namespace "bank": a proxy gets secrets of its own namespace shop only`,
			"kubernetes://vault":      "Secret shop/vault is not there",
			"configmap://edge":        "names no object: want configmap://NAMESPACE/NAME",
			"invalid://":              "is not a name of a secret",
			"kubernetes://edge":       "",
		} {
			if got := h.reason("shop", resource); !strings.Contains(got, want) || (want == "") != (got == "") {
				t.Errorf("%s: %q, want %q", resource, got, want)
			}
		}
		v.Close()
		if s := h.Stats(); s.Objects != 0 || s.Views != 0 || len(h.trouble) != 0 {
			t.Errorf("left behind: %+v %v", s, h.trouble)
		}
	})
}

// A change is told to those that have it, and to nobody else; a bad version takes the resource away.
func TestChangesAreTold(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		a := newAuthority(t)
		put := func(name string) {
			cert, key := a.issue(t, ecKey(t), time.Hour)
			h.put(name, Data{"tls.crt": cert, "tls.key": key})
		}
		put("a")
		put("b")
		v, other := h.open(who("gateway"), "kubernetes://a"), h.open(who("other"), "kubernetes://b")
		before, _ := v.Resources()
		v.changes, other.changes = 0, 0
		put("a")
		after, _ := v.Resources()
		was, _ := before.Get("kubernetes://a")
		is, _ := after.Get("kubernetes://a")
		if v.changes != 1 || other.changes != 0 || was.Sum() == is.Sum() {
			t.Errorf("told %d and %d times", v.changes, other.changes)
		}
		h.put("a", Data{"tls.crt": []byte("x"), "tls.key": []byte("y")})
		const want = "Secret shop/a: tls.crt: want certificates"
		if expect(t, "gets", v.has()); !strings.Contains(h.reason("shop", "kubernetes://a"), want) {
			t.Error(h.trouble)
		}
		put("a")
		if expect(t, "gets", v.has(), "kubernetes://a"); h.reason("shop", "kubernetes://a") != "" {
			t.Error(h.trouble)
		}
		h.put("a", nil)
		expect(t, "gets", v.has())
		v.Close()
		other.Close()
	})
}

// A certificate that expires is reported then, and sent all the same.
func TestExpiredIsReported(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		cert, key := newAuthority(t).issue(t, ecKey(t), time.Hour)
		h.put("a", Data{"tls.crt": cert, "tls.key": key})
		v := h.open(who("gateway"), "kubernetes://a")
		if got := h.reason("shop", "kubernetes://a"); got != "" {
			t.Error(got)
		}
		time.Sleep(time.Hour + reviewEvery)
		synctest.Wait()
		if got := h.reason("shop", "kubernetes://a"); !strings.Contains(got, "expired on 2000-01-01T01:00:00Z") {
			t.Error(got)
		}
		expect(t, "gets", v.has(), "kubernetes://a")
		v.Close()
	})
}

// A list of revoked certificates that expires, so that Envoy accepts no certificate any more, is reported then.
func TestExpiredListIsReported(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		a := newAuthority(t)
		h.put("a", Data{"cacert": a.pem, "ca.crl": a.crl(t)})
		v := h.open(who("gateway"), "kubernetes://a-cacert")
		if got := h.reason("shop", "kubernetes://a-cacert"); got != "" {
			t.Error(got)
		}
		time.Sleep(time.Hour + reviewEvery)
		synctest.Wait()
		const want = "Secret shop/a: its list of revoked certificates expired on 2000-01-01T01:00:00Z"
		if got := h.reason("shop", "kubernetes://a-cacert"); !strings.Contains(got, want) {
			t.Error(got)
		}
		expect(t, "gets", v.has(), "kubernetes://a-cacert")
		v.Close()
	})
}

// Who may not list Secrets gets roots alone. An answer holds for minutes, and is asked for anew; while nobody can say,
// who had the right is told nothing, and who asks for the first time is answered in seconds.
func TestRights(t *testing.T) {
	r := &rights{of: map[string]bool{"gateway": true, "other": false}}
	inHouse(t, r, func(t *testing.T, h *house) {
		a := newAuthority(t)
		cert, key := a.issue(t, ecKey(t), 1000*time.Hour)
		h.put("a", Data{"tls.crt": cert, "tls.key": key, "ca.crt": a.pem})
		names := []string{"kubernetes://a", "kubernetes://a-cacert"}
		v, denied := h.open(who("gateway"), names...), h.open(who("other"), names...)
		expect(t, "allowed", v.has(), names...)
		expect(t, "denied", denied.has(), names[1])
		if got := h.reason("shop", "kubernetes://a"); got != errDenied.Error() {
			t.Error(got)
		}
		more := h.open(who("gateway"), names[0])
		if r.asked != 2 {
			t.Errorf("asked %d times", r.asked)
		}
		more.Close()

		r.set("other", true)
		time.Sleep(deniedFor + reviewEvery)
		synctest.Wait()
		expect(t, "allowed since", denied.has(), names...)
		r.set("gateway", false)
		time.Sleep(allowedFor + reviewEvery)
		synctest.Wait()
		expect(t, "denied since", v.has(), names[1])

		r.forget("other")
		time.Sleep(allowedFor + reviewEvery)
		synctest.Wait()
		expect(t, "while nobody can say", denied.has(), "?")
		stranger := h.open(who("stranger"), names...)
		expect(t, "a stranger, while nobody can say", stranger.has(), names[1])
		r.set("stranger", true)
		time.Sleep(2 * reviewEvery)
		synctest.Wait()
		expect(t, "the stranger since", stranger.has(), names...)
		for _, v := range []*view{v, denied, stranger} {
			v.Close()
		}
	})
}

// A question that is not answered keeps nobody for longer than its time.
func TestHungQuestion(t *testing.T) {
	r := &rights{of: map[string]bool{"gateway": true}}
	inHouse(t, r, func(t *testing.T, h *house) {
		r.wait = make(chan struct{})
		v := h.open(who("gateway"), "kubernetes://a")
		expect(t, "at once", v.has(), "?")
		time.Sleep(askingFor)
		synctest.Wait()
		expect(t, "in time", v.has())
		close(r.wait)
		time.Sleep(2 * reviewEvery)
		synctest.Wait()
		if h.reason("shop", "kubernetes://a") != "Secret shop/a is not there" {
			t.Error(h.trouble)
		}
		v.Close()
	})
}

// A namespace's proxies cannot have more than so many objects held.
func TestObjectsAreBounded(t *testing.T) {
	inHouse(t, nil, func(t *testing.T, h *house) {
		var names []string
		for i := range maxObjects + 10 {
			names = append(names, fmt.Sprint("kubernetes://n", i))
		}
		slices.Sort(names) // as they are looked at
		v := h.open(who("gateway"), names...)
		if n := h.Stats().Objects; n != maxObjects {
			t.Errorf("%d objects", n)
		}
		if got := h.reason("shop", names[maxObjects]); got != errTooMany.Error() {
			t.Error(got)
		}
		expect(t, "gets", v.has())
		v.Close()
		if s := h.Stats(); s.Objects != 0 || len(h.held) != 0 {
			t.Error(s, h.held)
		}
	})
}

// TestWhoGetsWhat opens, changes and closes at random: what a View has is at all times what its identity may have, by a
// rule of two lines.
func TestWhoGetsWhat(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, ecKey(t), 100000*time.Hour)
	full := Data{"tls.crt": cert, "tls.key": key, "ca.crt": a.pem}
	rapid.Check(t, func(rt *rapid.T) {
		r := &rights{of: map[string]bool{"x": true, "y": false}}
		inHouse(t, r, func(t *testing.T, h *house) {
			there := map[Object]bool{}
			views := map[*view][]string{}
			spaces, accounts := []string{"shop", "bank"}, []string{"x", "y"}
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				switch rapid.SampledFrom([]string{"open", "open", "put", "take", "close"}).Draw(rt, "what") {
				case "open":
					id := who(rapid.SampledFrom(accounts).Draw(rt, "account"))
					id.Namespace = rapid.SampledFrom(spaces).Draw(rt, "of")
					names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"kubernetes://a", "kubernetes://a-cacert",
						"kubernetes://shop/b", "kubernetes://bank/a", "kubernetes-gateway://bank/b", "kubernetes://bank/b-cacert"}),
						1, 4, rapid.ID).Draw(rt, "names")
					views[h.open(id, names...)] = names
				case "put", "take":
					o := Object{Namespace: rapid.SampledFrom(spaces).Draw(rt, "in"),
						Name: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name")}
					there[o] = rapid.Bool().Draw(rt, "there")
					if h.files.Set(o, nil); there[o] {
						h.files.Set(o, full)
					}
				case "close":
					for v := range views {
						v.Close()
						delete(views, v)
						break
					}
				}
				synctest.Wait()
				for v, names := range views {
					var want []string
					for _, name := range names {
						asked, err := Parse(name, v.who.Namespace)
						if err == nil && there[asked.Objects[len(asked.Objects)-1]] &&
							(!asked.Reviewed || v.who.ServiceAccount == "x") {
							want = append(want, name)
						}
					}
					slices.Sort(want)
					if got := v.has(); !slices.Equal(got, want) {
						rt.Fatalf("%v asks for %q: has %q, want %q", v.who, names, got, want)
					}
				}
			}
			for v := range views {
				v.Close()
			}
			if s := h.Stats(); s.Objects+s.Views+len(h.items) != 0 {
				rt.Fatalf("left behind: %+v", s)
			}
		})
	})
}
