package ads

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/xdstype"
)

// client is a simulated xDS client: what it has, what it asks for, what it has been sent and has not read yet. It
// refuses resources whose text is bad, as Envoy does (protocol.md 5). What is sent without need fails the test.
type client struct {
	t       *rapid.T
	mesh    *mesh
	differ  *Differ
	table   *NamesTable
	delta   bool
	sidecar bool
	now     time.Time
	session *Session
	doubt   xdstype.Set

	inbox    []*Batch // sent and not read
	answered bool     // a response was ACKed or refused on this stream
	types    [numTypes]clientType
	total    int // responses read
	refusals int // reported
	nacks    int // sent
	aliases  aliases

	changing map[string]bool // clusters that a CDS response changed and EDS has not followed yet
}

// clientType is what a client knows of one type. has, version and named outlive a stream.
type clientType struct {
	has     map[string]*encodecacheEntry
	version string // SotW: of the last accepted response
	wants   map[string]bool
	asked   bool           // on this stream
	nonce   string         // of the last response read
	reads   int            // responses read on this stream
	sent    int            // responses sent on this stream
	fresh   map[string]int // of names that are subscribed to, how many responses had been sent before
	refused bool           // on this stream
}

func newClient(t *rapid.T, m *mesh, b *Differ, table *NamesTable, delta bool) *client {
	c := &client{t: t, mesh: m, differ: b, table: table, delta: delta, sidecar: true, now: time.Unix(1000, 0),
		changing: map[string]bool{}}
	for i := range c.types {
		c.types[i].has, c.types[i].wants = map[string]*encodecacheEntry{}, map[string]bool{}
	}
	return c
}

// connect begins a stream.
func (c *client) connect(desired *desiredMesh) {
	c.session = New(c.differ, Options{Delta: c.delta, Sidecar: c.sidecar, Doubt: c.doubt})
	c.inbox, c.answered, c.changing = nil, false, map[string]bool{}
	for i := range c.types {
		ct := &c.types[i]
		ct.asked, ct.nonce, ct.reads, ct.sent, ct.refused = false, "", 0, 0, false
		ct.fresh = map[string]int{}
		for name := range ct.wants {
			ct.fresh[name] = 0
		}
	}
	if desired != nil {
		c.do(c.session.SetDesired(c.now, c.differ, desired))
	}
	for _, typ := range []xdstype.Type{xdstype.Cluster, xdstype.Endpoint, xdstype.Listener, xdstype.Route} {
		if c.session.row(typ).Complete || len(c.types[typ].wants) > 0 {
			c.ask(typ, nil, nil, nil)
		}
	}
}

// ask sends a request: the first of its type on the stream, or a change of what is wanted, or an ACK or NACK.
func (c *client) ask(typ xdstype.Type, add, remove []string, refuse *statuspb.Status) {
	ct := &c.types[typ]
	r := Request{Delta: c.delta, TypeURL: typ.URL(), Error: refuse}
	if !c.answered && c.lacks(typ) {
		ct.version = "" // a server cannot tell it from a client that connects again
	}
	if !c.delta {
		r.Nonce, r.Version = ct.nonce, ct.version
		r.Names = c.table.Of(slices.Collect(maps.Keys(ct.wants)))
	} else if !ct.asked {
		initial := map[string]string{}
		for name, e := range ct.has {
			initial[name] = e.Version()
		}
		r.Initial, r.Subscribe = c.table.VersionsOf(initial), c.table.Of(slices.Collect(maps.Keys(ct.wants)))
	} else {
		r.Subscribe, r.Unsubscribe = c.table.Of(add), c.table.Of(remove)
	}
	ct.asked = true
	c.do(c.session.Receive(c.now, c.differ, &r))
}

// lacks reports whether the client does not have what it wants.
func (c *client) lacks(typ xdstype.Type) bool {
	for name := range c.types[typ].wants {
		if c.types[typ].has[name] == nil {
			return true
		}
	}
	return false
}

// reply is an ACK or NACK of the response just read.
func (c *client) reply(typ xdstype.Type, nonce string, refuse *statuspb.Status) {
	ct := &c.types[typ]
	c.answered = true
	r := Request{Delta: c.delta, TypeURL: typ.URL(), Nonce: nonce, Error: refuse}
	if !c.delta {
		r.Version = ct.version
		r.Names = c.table.Of(slices.Collect(maps.Keys(ct.wants)))
	}
	c.do(c.session.Receive(c.now, c.differ, &r))
}

// unread reports whether a response of a type waits to be read. A State-of-the-World server does not see what changes
// of a subscription until then, and a client that takes a change back meanwhile is not sent what it dropped.
func (c *client) unread(typ xdstype.Type) bool {
	return slices.ContainsFunc(c.inbox, func(b *Batch) bool { return b.TypeURL == typ.URL() })
}

// want changes what is wanted of a type by name.
func (c *client) want(typ xdstype.Type, wants map[string]bool) {
	ct := &c.types[typ]
	var add, remove []string
	for name := range wants {
		if !ct.wants[name] {
			add = append(add, name)
			ct.fresh[name] = ct.sent
		}
	}
	for name := range ct.wants {
		if !wants[name] {
			remove = append(remove, name)
			delete(ct.has, name)
		}
	}
	if len(add)+len(remove) == 0 {
		return
	}
	ct.wants = wants
	c.ask(typ, add, remove, nil)
}

func (c *client) do(effects []Effect) {
	for _, e := range effects {
		switch e.Kind {
		case Send:
			c.inbox = append(c.inbox, e.Batch)
			c.types[e.Type].sent++
		case Doubtful:
			c.doubt = c.doubt.With(e.Type)
		case Certain:
			c.doubt = c.doubt.Without(e.Type)
		case Expired:
		case Refused:
			c.refusals++
		case Healed:
		default:
			c.t.Fatalf("effect %+v", e)
		}
	}
	c.differ.Turn()
}

// read takes the next response.
func (c *client) read() {
	b := c.inbox[0]
	c.inbox = c.inbox[1:]
	c.total++
	typ, _ := xdstype.Of(b.TypeURL)
	c.t.Logf("  reads %s", describe(b, &c.aliases))
	ct := &c.types[typ]
	c.useless(typ, b)
	ct.reads++
	ct.nonce = b.Nonce
	var bad []string
	for _, e := range b.Entries {
		if refusedText(e) {
			bad = append(bad, e.Name())
		}
	}
	partly := len(bad) == 0 || typ == xdstype.Cluster || typ == xdstype.Endpoint && !c.delta
	if partly {
		c.take(typ, b, bad)
	}
	if len(bad) > 0 {
		ct.refused = true
		c.nacks++
		msg := "it does not decode"
		if typ == xdstype.Cluster {
			msg = fmt.Sprintf("Error adding/updating cluster(s) %s: bad", strings.Join(bad, ": bad, "))
		}
		c.reply(typ, b.Nonce, &statuspb.Status{Code: 13, Message: msg})
	} else {
		ct.version = b.Version
		c.reply(typ, b.Nonce, nil)
	}
	if typ == xdstype.Cluster {
		c.want(xdstype.Endpoint, namesOf(ct.has))
	}
}

// refusedText reports whether the client refuses a resource: it is bad, or a listener without the chains that it should
// have.
func refusedText(e *encodecacheEntry) bool {
	text := textOf(e)
	return strings.Contains(text, "bad") || e.TypeURL() == xdstype.ListenerURL && strings.HasPrefix(text, "h") &&
		!strings.Contains(text, "|")
}

func namesOf(has map[string]*encodecacheEntry) map[string]bool {
	out := map[string]bool{}
	for name := range has {
		out[name] = true
	}
	return out
}

// take takes the resources of a response but the bad ones.
func (c *client) take(typ xdstype.Type, b *Batch, bad []string) {
	ct := &c.types[typ]
	if !c.delta && c.session.row(typ).Complete {
		for name := range ct.has {
			if !slices.ContainsFunc(b.Entries, func(e *encodecacheEntry) bool { return e.Name() == name }) {
				delete(ct.has, name)
			}
		}
	}
	for _, name := range b.Removed {
		delete(ct.has, name)
	}
	for _, e := range b.Entries {
		if slices.Contains(bad, e.Name()) || !c.session.row(typ).Complete && !ct.wants[e.Name()] {
			continue
		}
		if typ == xdstype.Cluster && !sameContent(ct.has[e.Name()], e) {
			c.changing[e.Name()] = true
		}
		ct.has[e.Name()] = e
	}
}

// useless fails the test when a response repeats what the client has, but for the cases that protocol.md names.
func (c *client) useless(typ xdstype.Type, b *Batch) {
	ct := &c.types[typ]
	exempt := ct.reads == 0 || ct.refused || c.doubt.Has(typ) ||
		typ == xdstype.Endpoint && c.types[xdstype.Cluster].refused
	news := len(b.Removed) > 0
	for _, e := range b.Entries {
		same := sameContent(ct.has[e.Name()], e)
		before, subscribed := ct.fresh[e.Name()]
		news = news || !same
		switch {
		case exempt, !same, c.session.row(typ).Complete && !c.delta, subscribed && before <= ct.reads:
		case typ == xdstype.Endpoint && c.changing[e.Name()]:
		default:
			c.t.Fatalf("%v sends %s=%s, which the client has", typ, e.Name(), textOf(e))
		}
		switch {
		case typ == xdstype.Endpoint && c.changing[e.Name()]:
			delete(c.changing, e.Name()) // it was not sent for the subscription
		case before <= ct.reads:
			delete(ct.fresh, e.Name())
		}
	}
	if !exempt && !c.delta && c.session.row(typ).Complete && !news && len(b.Entries) == len(ct.has) {
		c.t.Fatalf("%v is sent again without a change", typ)
	}
}

// settle reads and ticks until there is nothing more.
func (c *client) settle() {
	for range 10000 {
		if len(c.inbox) > 0 {
			c.read()
			continue
		}
		due := c.session.Deadline()
		if due.IsZero() {
			return
		}
		if due.After(c.now) {
			c.now = due
		}
		c.do(c.session.Tick(c.now, c.differ))
	}
	c.t.Fatal("it never settles")
}
