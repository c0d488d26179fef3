package edge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/e2e/edge"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
	"github.com/pilotd/pilotd/snapshot/value"
)

// world is the mesh of both tenants, with its Envoys. Owned by the test's goroutine.
type world struct {
	t       *testing.T
	network *testnet.Network
	store   store
	pilotd  *parts.Pilotd
	secrets *parts.Authority
	envoys  []*watched
	probes  []probe
	outside *http.Client

	// round is what the good tenant's answers carry by now; logged is how much of pilotd's log has been read.
	round, logged int
}

// store is where pilotd reads the objects from.
type store interface {
	// Apply makes the objects of a YAML text so.
	Apply(text string)
	// replace makes those the hostile tenant's only generated objects.
	replace(objects []edge.Object)
}

// watched is an Envoy and what it had refused when it was last looked at.
type watched struct {
	name   string
	envoy  *parts.Envoy
	before map[string]int
	logged int
}

// probe is one way to the good tenant. ask returns the round that the answer carries.
type probe struct {
	name string
	ask  func() (round string, err error)
}

// newWorld starts pilotd on the mesh in a directory, the Envoys, and the good tenant's backend. mesh is the mesh
// configuration, empty for the default.
func newWorld(t *testing.T, mesh string) *world {
	t.Helper()
	d := parts.NewDirectory(t)
	sources := d.Sources()
	sources.MeshConfig = mesh
	return newWorldIn(t, &directory{Directory: d, t: t}, sources)
}

func newWorldIn(t *testing.T, s store, sources parts.Sources) *world {
	t.Helper()
	w := &world{t: t, network: testnet.New(t), store: s, secrets: parts.NewAuthority(t)}
	s.Apply(baseMesh() + "\n---" + goodRoute(0))
	w.pilotd = parts.StartPilotd(t, sources)
	backend := w.network.Pod(t, webIP)
	parts.StartEcho(t, backend, ":8080", "web")
	parts.StartTCPEcho(t, backend, ":9000", "web")
	w.outside = w.network.Pod(t, "10.244.9.1").Client()
	w.sidecar(clientDelta(), parts.Delta)
	w.sidecar(clientSotW(), parts.SotW)
	w.gateway(gateway(), parts.Delta)
	w.start(hostile(), parts.Sidecar, parts.Delta)
	if problem := w.apply(nil); problem != "" {
		t.Fatalf("the mesh without any hostile object: %s", problem)
	}
	return w
}

// start starts an Envoy and waits until it is ready.
func (w *world) start(p parts.Workload, kind parts.ProxyKind, protocol parts.Protocol) *testnet.Pod {
	w.t.Helper()
	pod := w.network.Pod(w.t, p.IP)
	e := parts.StartEnvoy(w.t, pod, parts.EnvoySpec{
		Kind: kind, Protocol: protocol, Workload: p, XDS: w.pilotd.Address(), Secrets: w.secrets,
		Metadata: bothFamilies(p),
	})
	e.AwaitReady()
	w.envoys = append(w.envoys, &watched{name: p.Name, envoy: e})
	return pod
}

// bothFamilies says that a proxy has an IPv6 address too: it is sent the listeners of IPv6 addresses then. Clients over
// Delta have IPv4 alone.
func bothFamilies(p parts.Workload) map[string]any {
	if p.Name == clientDelta().Name {
		return nil
	}
	return map[string]any{"INSTANCE_IPS": p.IP + ",2001:db8:ffff::1"}
}

// sidecar adds a client of the good tenant, and its ways to the web service.
func (w *world) sidecar(p parts.Workload, protocol parts.Protocol) {
	w.t.Helper()
	pod := w.start(p, parts.Sidecar, protocol)
	client := pod.Client()
	w.probes = append(w.probes,
		probe{p.Name + " over HTTP",
			func() (string, error) { return askWeb(client, "http://"+webVIP+":80/", webHost) }},
		probe{p.Name + " over TCP", func() (string, error) { return "", greeted(w.t, pod) }})
}

// gateway adds a gateway, which is asked from outside the mesh.
func (w *world) gateway(p parts.Workload, protocol parts.Protocol) {
	w.t.Helper()
	w.start(p, parts.Gateway, protocol)
	w.probes = append(w.probes, probe{p.Name, func() (string, error) {
		return askWeb(w.outside, "http://"+p.IP+":8080/", publicHost)
	}})
}

func askWeb(client *http.Client, url, host string) (string, error) {
	a, err := parts.Ask(client, url, host)
	if err != nil {
		return "", err
	}
	if a.Name != "web" {
		return "", fmt.Errorf("%s answered %d by %q", host, a.Status, a.Name)
	}
	return a.Header.Get("x-round"), nil
}

// greeted talks to the TCP port, where the server speaks first.
func greeted(t *testing.T, pod *testnet.Pod) error {
	c, err := pod.DialContext(t.Context(), "tcp", webVIP+":9000")
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	greeting := make([]byte, len("web"))
	if _, err := io.ReadFull(c, greeting); err != nil {
		return err
	}
	if string(greeting) != "web" {
		return errors.New("greeting " + string(greeting))
	}
	return nil
}

// apply makes those the hostile tenant's only objects and says what went wrong, empty if nothing did: an Envoy that
// refuses, a good tenant whose traffic fails or whose edit does not arrive, a pilotd that panics.
func (w *world) apply(objects []edge.Object) string {
	w.t.Helper()
	return w.judge(func() { w.store.replace(objects) })
}

// applyAnew returns apply for a pilotd that starts with these objects: it knows nothing of what Envoys refused before.
func (w *world) applyAnew(objects []edge.Object) string {
	w.t.Helper()
	w.pilotd.Kill()
	w.store.replace(objects)
	w.pilotd.Start()
	w.logged = 0
	return w.judge(func() {})
}

func (w *world) judge(change func()) string {
	w.t.Helper()
	var problems []string
	stop := w.watch()
	change()
	w.round++
	w.store.Apply(goodRoute(w.round))
	if err := w.arrived(); err != nil {
		problems = append(problems, err.Error())
	}
	if err := stop(); err != nil {
		problems = append(problems, err.Error())
	}
	return strings.Join(append(problems, w.faults()...), "\n")
}

// faults returns refusals of Envoys and panics of pilotd since the last call. A pilotd that has ended is started again.
func (w *world) faults() []string {
	w.t.Helper()
	problems := w.refused()
	if err := w.pilotd.Alive(); err != nil {
		problems = append(problems, err.Error()+"\n"+w.pilotd.LogTail(3000))
		w.pilotd.Start()
		w.logged = 0
	} else if panicked := w.panicked(); panicked != "" {
		problems = append(problems, "pilotd logged a panic: "+panicked)
	}
	return problems
}

// panicked returns what pilotd logged of a panic since the last call, whether it caught it or not.
func (w *world) panicked() string {
	log := w.pilotd.LogTail(1 << 28)
	fresh := log[min(w.logged, len(log)):]
	w.logged = len(log)
	if at := regexp.MustCompile(`panic:|panicked|runtime error|goroutine \d+ \[`).FindStringIndex(fresh); at != nil {
		return fmt.Sprintf("%.2000s", fresh[at[0]:])
	}
	return ""
}

// arrived waits until every way to the good tenant shows the round. It waits no longer when an Envoy has refused
// something: that is why.
func (w *world) arrived() error {
	for _, p := range w.probes {
		var refused error
		err := parts.Poll(15*time.Second, 20*time.Millisecond, func() error {
			unseen := w.seen(p)
			if refused = nil; unseen != nil {
				refused = w.anyRefused()
			}
			if unseen == nil || errors.Is(refused, errRefused) {
				return nil
			}
			return errors.Join(unseen, w.pilotd.Alive())
		})
		if err != nil || refused != nil {
			return errors.Join(err, refused)
		}
	}
	return nil
}

// seen returns nil if the good tenant answers that way with the round, where answers say it.
func (w *world) seen(p probe) error {
	got, err := p.ask()
	if err == nil && got != "" && got != fmt.Sprint(w.round) {
		err = fmt.Errorf("round %q", got)
	}
	if err != nil {
		return fmt.Errorf("the good tenant's edit %d did not reach %s: %w", w.round, p.name, err)
	}
	return nil
}

var errRefused = errors.New("an Envoy refused something, and the good tenant's edit has not arrived")

// anyRefused returns errRefused if an Envoy has refused something since refused was called last.
func (w *world) anyRefused() error {
	for _, e := range w.envoys {
		stats, err := e.envoy.Stats(`update_rejected$`)
		if err != nil {
			return err
		}
		for name, n := range stats {
			if n > e.before[name] {
				return errRefused
			}
		}
	}
	return nil
}

// watch asks the good tenant again and again until the function that it returns is called, which says the first
// failure.
func (w *world) watch() func() error {
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		for i := 0; ; i++ {
			p := w.probes[i%len(w.probes)]
			if _, err := p.ask(); err != nil {
				stopped <- fmt.Errorf("the good tenant, by %s: %w", p.name, err)
				return
			}
			select {
			case <-stop:
				stopped <- nil
				return
			case <-every.C:
			}
		}
	}()
	return func() error {
		close(stop)
		return <-stopped
	}
}

// refused says what the Envoys refused since the last call, in their own words.
func (w *world) refused() []string {
	w.t.Helper()
	var out []string
	for _, e := range w.envoys {
		stats, err := e.envoy.Stats(`update_rejected$`)
		if err != nil {
			out = append(out, fmt.Sprintf("%s: %v\n%s", e.name, err, e.envoy.LogTail(2000)))
			continue
		}
		if e.before != nil {
			for name, n := range stats {
				if n > e.before[name] {
					out = append(out, fmt.Sprintf("%s: %s", e.name, name))
				}
			}
		}
		e.before = stats
		log := e.envoy.LogTail(1 << 28)
		for entry := range strings.SplitSeq(log[min(e.logged, len(log)):], "\n[20") {
			if reason := why(entry); reason != "" && !slices.Contains(out, reason) {
				out = append(out, reason)
			}
		}
		e.logged = len(log)
	}
	return out
}

// why returns what an entry of Envoy's log says of a refusal, without the resource that some errors repeat. Empty for
// other entries.
func why(entry string) string {
	at := strings.Index(entry, " rejected: ")
	if at < 0 {
		return ""
	}
	entry = strings.TrimSpace(entry[at:])
	if at := strings.Index(entry, "Proto constraint validation failed ("); at >= 0 {
		return fmt.Sprintf("%.500s", entry[at:])
	}
	if len(entry) > 800 {
		return entry[:400] + " … " + entry[len(entry)-400:]
	}
	return entry
}

// complaint is what pilotd says of an object.
type complaint struct {
	refused bool   // the object is not in force
	lines   string // "field: reason", where the reason may begin with a field of what is left out, a line for each
}

// complaints returns the objects of which pilotd says that something is wrong with them.
func (w *world) complaints() map[value.ObjectKey]complaint {
	w.t.Helper()
	page, err := w.pilotd.Debug("/debug/rejectionsz")
	if err != nil {
		w.t.Fatal(err)
	}
	var list []struct {
		Key                  struct{ Kind, Namespace, Name string }
		Field, Cause, Reason string
	}
	if err := json.Unmarshal([]byte(page), &list); err != nil {
		w.t.Fatalf("%v in %s", err, page)
	}
	out := make(map[value.ObjectKey]complaint)
	for _, r := range list {
		key := value.ObjectKey{Kind: edge.KindNamed(r.Key.Kind), Namespace: r.Key.Namespace, Name: r.Key.Name}
		c := out[key]
		c.refused = c.refused || r.Cause == "invalid" || r.Cause == "unreadable"
		c.lines += fmt.Sprintf("%s (%s)\n", strings.TrimPrefix(r.Field+": "+r.Reason, ": "), r.Cause)
		out[key] = c
	}
	return out
}
