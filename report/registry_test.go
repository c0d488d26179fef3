package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotd/pilotd/snapshot/value"
)

// bench is a Registry with a log and a clock that the test sets.
type bench struct {
	*Registry
	log   bytes.Buffer
	now   time.Time
	began map[Count]int
}

func newBench() *bench {
	b := &bench{now: time.Unix(1000, 0), began: map[Count]int{}}
	b.Registry = New(Options{
		Log: slog.New(slog.NewTextHandler(&b.log, nil)), Now: func() time.Time { return b.now },
		Began: func(k value.Kind, c Cause) { b.began[Count{k, c}]++ },
	})
	return b
}

func (b *bench) lines() (n int) { return strings.Count(b.log.String(), "\n") }

func key(name string) value.ObjectKey {
	return value.ObjectKey{Kind: value.KindVirtualService, Namespace: "shop", Name: name}
}

func bad(name, field string) Problem {
	return Problem{Source: "dir", Key: key(name), Where: "a.yaml:3", Field: field, Cause: Invalid,
		Reason: "expected something else"}
}

// TestSetReplaces: what an owner said of a subject before goes, what it repeats keeps standing since when it began, and
// other owners' words stay.
func TestSetReplaces(t *testing.T) {
	b := newBench()
	door, plan := Subject{Owner: "door", Key: key("a")}, Subject{Owner: "plan", Key: key("a")}
	b.Set(door, []Problem{bad("a", "x"), bad("a", "y"), bad("a", "y")})
	left := bad("a", "x")
	left.Cause = LeftOut
	b.Set(plan, []Problem{left})
	b.now = b.now.Add(time.Hour)
	b.Set(door, []Problem{bad("a", "y"), bad("a", "z")})
	var got []string
	for _, st := range b.All() {
		got = append(got, fmt.Sprint(st.Field, " ", st.Cause, " ", st.Since.Unix()))
	}
	if want := "y invalid 1000, z invalid 4600, x left_out 1000"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if n := b.lines(); n != 4 {
		t.Errorf("%d log lines, want one for each problem that began:\n%s", n, b.log.String())
	}
	kind := value.KindVirtualService
	if want := map[Count]int{{kind, Invalid}: 2, {kind, LeftOut}: 1}; !maps.Equal(b.Counts(), want) {
		t.Errorf("counts %v, want %v", b.Counts(), want)
	}
	if want := map[Count]int{{kind, Invalid}: 3, {kind, LeftOut}: 1}; !maps.Equal(b.began, want) {
		t.Errorf("began %v, want %v", b.began, want)
	}
	b.Set(door, nil)
	b.Set(plan, nil)
	if len(b.All())+len(b.Counts())+len(b.subjects) != 0 {
		t.Errorf("%v is left", b.All())
	}
}

// TestRefuseJoinsClients: clients that refuse the same thing are told of together, and only the first is logged; Heal
// takes it back.
func TestRefuseJoinsClients(t *testing.T) {
	b := newBench()
	p := bad("a", "")
	p.Resource = "RDS 80, virtual host a.example.com:80"
	for i := range 3 * MaxClients {
		b.Refuse(p, fmt.Sprintf("sidecar~%d", i%(2*MaxClients)), strings.Repeat("no ", MaxMessage))
	}
	all := b.All()
	if len(all) != 1 || len(all[0].Clients) != MaxClients || all[0].Cause != ClientRefused || b.lines() != 1 {
		t.Fatalf("%d problems, %d lines: %+v", len(all), b.lines(), all)
	}
	if n := len(all[0].Clients[0].Message); n > MaxMessage+len("…") {
		t.Errorf("%d bytes of a message are kept", n)
	}
	text, err := json.Marshal(all)
	if err != nil || !strings.Contains(string(text), `"Key":{"Kind":"VirtualService","Namespace":"shop","Name":"a"}`) {
		t.Errorf("as JSON: %s, %v", text, err)
	}
	b.Heal(p)
	b.Heal(p)
	if len(b.All())+len(b.Counts()) != 0 {
		t.Error("it still stands")
	}
}

// TestRefusalsAreBounded: clients cannot make the Registry grow without end.
func TestRefusalsAreBounded(t *testing.T) {
	b := newBench()
	for i := range 2 * MaxRefusals {
		b.Refuse(bad(fmt.Sprint(i), ""), "sidecar~1", "no")
	}
	if n := len(b.All()); n != MaxRefusals {
		t.Errorf("%d problems are kept, want %d", n, MaxRefusals)
	}
}

// TestLogIsLimited: of thousands of problems at once the log has some, and says later how many it left out; the page
// has all.
func TestLogIsLimited(t *testing.T) {
	b := newBench()
	const many = 5000
	for i := range many {
		b.Set(Subject{Owner: "door", Key: key(fmt.Sprint(i))}, []Problem{bad(fmt.Sprint(i), "x")})
	}
	if n := b.lines(); n != burst {
		t.Errorf("%d lines at once, want %d", n, burst)
	}
	b.now = b.now.Add(time.Minute)
	b.Set(Subject{Owner: "door", Key: key("last")}, []Problem{bad("last", "x")})
	if want := fmt.Sprintf("linesLeftOut=%d", many-burst); !strings.Contains(b.log.String(), want) {
		t.Errorf("the log does not say %s", want)
	}
	if n := len(b.All()); n != many+1 {
		t.Errorf("%d on the page, want %d", n, many+1)
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	r := New(Options{Log: slog.New(slog.DiscardHandler)})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				p := bad(fmt.Sprint(i%7), fmt.Sprint(g))
				r.Set(Subject{Owner: fmt.Sprint(g), Key: p.Key}, []Problem{p})
				r.Refuse(p, "sidecar~1", "no")
				r.All()
				r.Counts()
				r.Heal(p)
				r.Set(Subject{Owner: fmt.Sprint(g), Key: p.Key}, nil)
			}
		})
	}
	wg.Wait()
	if len(r.All()) != 0 {
		t.Error("something still stands")
	}
}
