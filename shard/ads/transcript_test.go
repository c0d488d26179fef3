package ads

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"golang.org/x/tools/txtar"

	"github.com/pilotd/pilotd/transcript"
	"github.com/pilotd/pilotd/xdstype"
)

// TestTranscripts runs the files of testdata. Each is a comment that tells the rule, the events, and what the Session
// says to each.
//
//	connect sotw|delta [sidecar] [max=N]    a new stream of the same node; what is in doubt stays so
//	desired TYPE NAME=TEXT … ; TYPE …       what the client should have; types that are not named stay. "?" in place of
//	                                        the resources: not known yet; "!": the client keeps what it has
//	endpoints NAME=TEXT …                   endpoints change
//	list TYPE [NAME …] [version=V] [nonce=N]     a State-of-the-World request
//	sub TYPE [+NAME …] [-NAME …] [has NAME=TEXT …] [nonce=N]    a Delta request
//	ack TYPE [N], nack TYPE [N] MESSAGE     the answer to the last response of the type, or to an older one
//	tick DURATION                           time passes
func TestTranscripts(t *testing.T) {
	update := flag.Lookup("update").Value.String() == "true"
	transcript.Each(t, "testdata/*.txtar", func(t *testing.T, a *transcript.File) {
		r := newScript(t)
		for line := range strings.Lines(string(a.Files[0].Data)) {
			r.run(strings.TrimSpace(line))
		}
		got := r.out.String()
		if update {
			a.Files = []txtar.File{a.Files[0], {Name: "says", Data: []byte(got)}}
			a.Write(t)
			return
		}
		if len(a.Files) < 2 || string(a.Files[1].Data) != got {
			t.Errorf("got\n%s", got)
		}
	})
}

// script runs events on the Session of one stream.
type script struct {
	t       *testing.T
	out     strings.Builder
	mesh    *mesh
	differ  *Differ
	table   *NamesTable
	session *Session
	delta   bool
	now     time.Time
	doubt   xdstype.Set
	aliases aliases
	nonces  [numTypes][]string
	names   [numTypes]*Names
	sub     [numTypes]string // the version that the client has accepted
	last    [numTypes]string
}

func newScript(t *testing.T) *script {
	table := NewNamesTable()
	var n uint64
	return &script{
		t: t, mesh: newMesh(), table: table, now: time.Unix(1000, 0),
		differ: NewDiffer(xdstype.Standard(), table, NewVerdicts(), func() uint64 { n++; return n }),
	}
}

func (r *script) run(line string) {
	fmt.Fprintf(&r.out, "%s\n", strings.TrimRight("> "+line, " "))
	if line == "" || line[0] == '#' {
		return
	}
	words := strings.Fields(line)
	verb, args := words[0], words[1:]
	switch verb {
	case "connect":
		r.connect(args)
	case "desired":
		r.desired(args)
	case "endpoints":
		for _, a := range args {
			name, text, _ := strings.Cut(a, "=")
			r.mesh.endpoints(name, text)
		}
		r.say(r.session.Refresh(r.now, r.differ))
	case "list", "sub":
		r.request(verb, args)
	case "ack", "nack":
		r.answer(verb, args)
	case "tick":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			r.t.Fatal(err)
		}
		r.tick(r.now.Add(d))
	default:
		r.t.Fatalf("unknown verb %q", verb)
	}
	r.differ.Turn()
}

// tick lets time pass, and calls the Session when it wants to be.
func (r *script) tick(to time.Time) {
	for range 100 {
		due := r.session.Deadline()
		if due.IsZero() || due.After(to) {
			r.now = to
			return
		}
		if due.After(r.now) {
			r.now = due
		}
		r.say(r.session.Tick(r.now, r.differ))
	}
	r.t.Fatal("the timer never rests")
}

func (r *script) connect(args []string) {
	o := Options{Delta: args[0] == "delta", Doubt: r.doubt}
	for _, a := range args[1:] {
		if a == "sidecar" {
			o.Sidecar = true
		}
		_, _ = fmt.Sscanf(a, "max=%d", &o.MaxNames)
	}
	r.session, r.delta = New(r.differ, o), o.Delta
	r.nonces, r.names, r.last = [numTypes][]string{}, [numTypes]*Names{}, [numTypes]string{}
	if n := len(r.mesh.made); n > 0 {
		r.say(r.session.SetDesired(r.now, r.differ, r.mesh.made[n-1]))
	}
}

func (r *script) desired(args []string) {
	sections := map[xdstype.Type]Section{}
	for part := range strings.SplitSeq(strings.Join(args, " "), ";") {
		words := strings.Fields(part)
		typ, ok := typeOf(words[0])
		if !ok {
			r.t.Fatalf("unknown type %q", words[0])
		}
		sections[typ] = r.mesh.section(typ, words[1:])
	}
	desired := r.mesh.desired(sections)
	for _, part := range strings.Split(strings.Join(args, " "), ";") {
		words := strings.Fields(part)
		typ, _ := typeOf(words[0])
		switch {
		case slices.Equal(words[1:], []string{"?"}):
			desired.resources[typ] = nil
		case slices.Equal(words[1:], []string{"!"}):
			desired.resources[typ] = &Resources{Final: true}
		}
	}
	if r.session != nil {
		r.say(r.session.SetDesired(r.now, r.differ, desired))
	}
}

func (r *script) request(verb string, args []string) {
	typ, served := typeOf(args[0])
	req := Request{Delta: verb == "sub", TypeURL: args[0]}
	if served {
		req.TypeURL = typ.URL()
		req.Nonce, req.Version = r.last[typ], r.sub[typ]
		if req.Delta {
			req.Nonce = ""
		}
	}
	var names, subscribe, unsubscribe []string
	var initial map[string]string
	has := false
	for _, a := range args[1:] {
		name, text, isPair := strings.Cut(a, "=")
		switch {
		case a == "has":
			has = true
			initial = map[string]string{}
		case name == "nonce" && isPair:
			req.Nonce = text
		case name == "version" && isPair:
			req.Version = r.aliases.version(text)
		case has:
			initial[name] = r.mesh.entry(typ, name, text).Version()
		case a[0] == '+':
			subscribe = append(subscribe, a[1:])
		case a[0] == '-':
			unsubscribe = append(unsubscribe, a[1:])
		default:
			names = append(names, a)
		}
	}
	req.Names = r.table.Of(names)
	req.Subscribe, req.Unsubscribe, req.Initial = r.table.Of(subscribe), r.table.Of(unsubscribe),
		r.table.VersionsOf(initial)
	r.names[typ] = req.Names
	r.say(r.session.Receive(r.now, r.differ, &req))
}

func (r *script) answer(verb string, args []string) {
	typ, _ := typeOf(args[0])
	nonce, rest := r.last[typ], args[1:]
	if len(rest) > 0 && slices.Contains(r.nonces[typ], rest[0]) {
		nonce, rest = rest[0], rest[1:]
	}
	req := Request{Delta: r.delta, TypeURL: typ.URL(), Nonce: nonce}
	if !r.delta {
		req.Names, req.Version = r.names[typ], r.sub[typ]
	}
	if verb == "nack" {
		req.Error = &statuspb.Status{Code: 13, Message: strings.Join(rest, " ")}
	}
	r.say(r.session.Receive(r.now, r.differ, &req))
}

// culprits returns the resources of an Effect, with the part that is meant.
func culprits(e Effect) string {
	var out []string
	for _, o := range e.Offences {
		out = append(out, strings.TrimSuffix(o.Name+"/"+o.Part, "/"))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (r *script) say(effects []Effect) {
	for _, e := range effects {
		switch e.Kind {
		case Send:
			fmt.Fprintf(&r.out, "  %s\n", describe(e.Batch, &r.aliases))
			if _, served := xdstype.Of(e.TypeURL); served {
				r.last[e.Type] = e.Batch.Nonce
				r.nonces[e.Type] = append(r.nonces[e.Type], e.Batch.Nonce)
			}
		case Refused:
			fmt.Fprintf(&r.out, "  refused %v: %s\n", e.Type, culprits(e))
		case Healed:
			fmt.Fprintf(&r.out, "  healed %v: %s\n", e.Type, culprits(e))
		case Expired:
			fmt.Fprintf(&r.out, "  expired nonce of %v\n", e.Type)
		case Unserved:
			fmt.Fprintf(&r.out, "  not served: %s\n", e.TypeURL)
		case Wanted:
			fmt.Fprintf(&r.out, "  wanted: %v\n", e.Type)
		case Doubtful:
			r.doubt = r.doubt.With(e.Type)
			fmt.Fprintf(&r.out, "  in doubt: %v\n", e.Type)
		case Certain:
			r.doubt = r.doubt.Without(e.Type)
			fmt.Fprintf(&r.out, "  certain: %v\n", e.Type)
		case Exceeded:
			fmt.Fprintf(&r.out, "  end: %v\n", e.Err)
		}
	}
}
