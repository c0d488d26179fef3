package ads

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

type encodecacheEntry = encodecache.Entry

// TestClientEndsWithTheResourceSet runs random sequences of new sets, changed endpoints, reads, subscriptions, broken
// streams and passing time against a simulated client. In the end it has exactly what the last ResourceSet
// says, but for what it refused; nothing was sent that it had.
func TestClientEndsWithTheResourceSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { simulate(t, false) })
}

// TestClientThatRefuses is the same with resources that the client refuses.
func TestClientThatRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { simulate(t, true) })
}

func simulate(t *rapid.T, bad bool) {
	m, table := newMesh(), NewNamesTable()
	var n uint64
	differ := NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { n++; return n })
	c := newClient(t, m, differ, table, rapid.Bool().Draw(t, "delta"))
	c.sidecar = !bad || rapid.Bool().Draw(t, "sidecar")
	var desired *desiredMesh
	if rapid.Bool().Draw(t, "ResourceSet first") {
		desired = drawResourceSet(t, m, nil, bad)
	}
	c.connect(desired)
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"desired", "endpoints", "read", "read", "read", "routes", "tick",
			"reconnect"}).Draw(t, "step") {
		case "desired":
			desired = drawResourceSet(t, m, desired, bad)
			c.do(c.session.SetDesired(c.now, differ, desired))
		case "endpoints":
			if desired != nil {
				m.endpoints(name(t, "c"), drawText(t, bad))
				c.do(c.session.Refresh(c.now, differ))
			}
		case "read":
			if len(c.inbox) > 0 {
				c.read()
			}
		case "routes":
			if wants := drawSet(t, "r"); c.delta || !c.unread(xdstype.Route) {
				c.want(xdstype.Route, wants)
			}
		case "tick":
			c.now = c.now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			if due := c.session.Deadline(); !due.IsZero() && !due.After(c.now) {
				c.do(c.session.Tick(c.now, differ))
			}
		case "reconnect":
			c.connect(desired)
		}
	}
	if desired == nil {
		desired = drawResourceSet(t, m, nil, bad)
		c.do(c.session.SetDesired(c.now, differ, desired))
	}
	c.settle()
	c.check(desired)
}

// check holds what the client has against what the ResourceSet says.
func (c *client) check(desired *desiredMesh) {
	for typ := range xdstype.Type(numTypes) {
		ct := &c.types[typ]
		want := map[string]*encodecache.Entry{}
		for name, e := range desired.resources[typ].Section.All() {
			if c.session.row(typ).Complete || ct.wants[name] {
				want[name] = e
			}
		}
		for name := range ct.wants {
			if want[name] == nil && typ == xdstype.Route && c.sidecar {
				want[name] = c.differ.empty(c.session.row(typ), name)
			}
		}
		for name, e := range want {
			if refusedText(e) && partsOf(c.session.kind(typ), e) != nil {
				c.checkParts(typ, ct.has[name], e)
				continue
			}
			if !sameContent(ct.has[name], e) && !refusedText(e) {
				c.t.Fatalf("%v %s is %s, should be %s", typ, name, show(ct.has[name]), textOf(e))
			}
		}
		for name := range ct.has {
			gone := want[name] == nil && (c.delta || c.session.row(typ).Complete)
			if gone {
				c.t.Fatalf("%v %s is still there", typ, name)
			}
		}
	}
	if c.session.Pending() {
		c.t.Fatal("something is pending for ever")
	}
	if c.session.sends == 0 &&
		(c.delta || desired.resources[xdstype.Cluster].Section.Len()+desired.resources[xdstype.Listener].Section.Len() > 0) {
		c.t.Fatal("the stream got no response")
	}
}

// checkParts holds what the client has of a resource with bad parts against what it should have: all others.
func (c *client) checkParts(typ xdstype.Type, has, want *encodecache.Entry) {
	parts := func(e *encodecache.Entry) map[string]string {
		out := map[string]string{}
		if partsOf(c.session.kind(typ), e) != nil {
			for _, w := range strings.Split(textOf(e), "|")[1:] {
				name, text, _ := strings.Cut(w, ":")
				out[name] = text
			}
		}
		return out
	}
	wanted, got := parts(want), parts(has)
	if typ == xdstype.Listener && len(wanted) == 1 {
		return // without its only chain it is not sent: a client may keep what it has from an earlier stream
	}
	for name, text := range wanted {
		if !strings.Contains(text, "bad") && got[name] != text {
			c.t.Fatalf("%v %s: part %s is %q, should be %q", typ, want.Name(), name, got[name], text)
		}
	}
	for name, text := range got {
		if _, ok := wanted[name]; !ok || strings.Contains(text, "bad") {
			c.t.Fatalf("%v %s: part %s is %q, should not be there", typ, want.Name(), name, text)
		}
	}
}

func show(e *encodecache.Entry) string {
	if e == nil {
		return "missing"
	}
	return textOf(e)
}

func name(t *rapid.T, prefix string) string {
	return fmt.Sprint(prefix, rapid.IntRange(0, 4).Draw(t, prefix))
}

func drawText(t *rapid.T, bad bool) string {
	text := fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "text"))
	if bad && rapid.IntRange(0, 5).Draw(t, "bad") == 0 {
		return "bad" + text
	}
	return text
}

// drawParts returns the text of a composite resource, with up to six parts. The header is always good.
func drawParts(t *rapid.T, bad bool) string {
	out := fmt.Sprint("h", rapid.IntRange(0, 1).Draw(t, "header"))
	for i := range rapid.IntRange(1, 6).Draw(t, "parts") {
		out += fmt.Sprintf("|p%d:%s", i, drawText(t, bad))
	}
	return out
}

func drawSet(t *rapid.T, prefix string) map[string]bool {
	out := map[string]bool{}
	for range rapid.IntRange(0, 4).Draw(t, "size") {
		out[name(t, prefix)] = true
	}
	return out
}

// drawResourceSet returns a change of some resources of the last ResourceSet.
func drawResourceSet(t *rapid.T, m *mesh, last *desiredMesh, bad bool) *desiredMesh {
	sections := map[xdstype.Type]Section{}
	for typ := range xdstype.Type(numTypes) {
		if last != nil {
			sections[typ] = last.resources[typ].Section
		}
	}
	for range rapid.IntRange(1, 6).Draw(t, "edits") {
		typ := xdstype.Type(rapid.IntRange(0, numTypes-1).Draw(t, "type"))
		if typ == xdstype.Endpoint {
			typ = xdstype.Cluster
		}
		n := name(t, [numTypes]string{"c", "c", "l", "r"}[typ])
		if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			sections[typ] = sections[typ].Delete(n)
			if typ == xdstype.Cluster {
				sections[xdstype.Endpoint] = sections[xdstype.Endpoint].Delete(n)
			}
			continue
		}
		text := drawText(t, bad)
		if bad && typ >= xdstype.Listener && rapid.Bool().Draw(t, "composite") {
			text = drawParts(t, bad)
		} else if typ == xdstype.Route {
			text += ":" + name(t, "c")
		}
		sections[typ] = sections[typ].Set(n, m.entry(typ, n, text))
		if _, ok := sections[xdstype.Endpoint].Get(n); typ == xdstype.Cluster && !ok {
			sections[xdstype.Endpoint] = sections[xdstype.Endpoint].Set(n, m.entry(xdstype.Endpoint, n, "0"))
		}
	}
	return m.desired(sections)
}
