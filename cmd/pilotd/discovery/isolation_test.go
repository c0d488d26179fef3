package discovery

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"

	meshv1 "istio.io/api/networking/v1alpha3"
	networkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// goodChanges reach every proxy of the sample mesh, one by one.
func goodChanges() []ingest.Event {
	return []ingest.Event{slice("web", "10.10.0.2"), slice("web", "10.10.0.1"), service("late", "10.96.0.9", 9001),
		pod("pod-10.10.0.9", "late", "10.10.0.9"), slice("late", "10.10.0.9"),
		virtualService("web", "web", hostOf("late")), gatewayRoute("late"), gone(service("other", ""))}
}

// TestStuckProxyDelaysNobody is invariant I6 for proxies: while one of each class has stopped in the middle of each
// type, everybody else has each change as soon as the server rests, without time passing.
func TestStuckProxyDelaysNobody(t *testing.T) {
	inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
		r.everyKindOfProxy()
		for _, c := range r.clients {
			c.stall()
		}
		r.apply(rule("cart", hostOf("cart"), idle(3)), slice("web", "10.10.0.1"), gatewayRoute("cart"))
		r.everyKindOfProxy()
		for _, change := range goodChanges() {
			r.apply(change)
			r.checkPrompt(t, change.Key.String())
		}
	})
}

// checkPrompt holds every client that answers against one that connects now.
func (r *running) checkPrompt(t *testing.T, after string) {
	t.Helper()
	for _, c := range r.clients {
		if c.isSlow() {
			continue
		}
		has := c.content()
		fresh := r.join(c.node, c.delta)
		if d := difference(has, fresh.content()); d != "" {
			t.Errorf("after %s: client %d (%s, delta %v): %s", after, c.id, c.proxy.ID, c.delta, d)
		}
		r.leave(fresh)
		for _, wrong := range c.complaints() {
			t.Errorf("after %s: client %d (%s, delta %v): %s", after, c.id, c.proxy.ID, c.delta, wrong)
		}
	}
}

// badObjects returns objects that are refused: each is a new version of a good one, or stands alone.
func badObjects() []ingest.Event {
	nowhere := virtualService("web", "web", "")
	twice := rule("cart", hostOf("cart"), nil)
	spec := &twice.Object.(*networkingv1.DestinationRule).Spec
	spec.Subsets = append(spec.Subsets, spec.Subsets[0])
	noPort := service("web", "10.96.0.1")
	noPort.Object.(*corev1.Service).Spec.Ports[0].Port = 70000
	entry := put(value.KindServiceEntry, &networkingv1.ServiceEntry{ObjectMeta: inShop("bad"),
		Spec: meshv1.ServiceEntry{Hosts: []string{"*"}}})
	mesh := ingest.Event{Source: "test", Key: value.ObjectKey{Kind: value.KindMeshConfig, Namespace: "istio-system",
		Name: "istio"}, Object: "outboundTrafficPolicy: ["}
	return []ingest.Event{nowhere, twice, noPort, entry, mesh}
}

// TestBadObjectStopsNothing is invariant I6 for objects: a bad one sends nothing, leaves its last good version in
// force, and what comes with it and after it is served.
func TestBadObjectStopsNothing(t *testing.T) {
	for _, bad := range badObjects() {
		inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
			r.everyKindOfProxy()
			sent, _ := r.responsesMade()
			r.apply(bad)
			if now, _ := r.responsesMade(); now != sent {
				t.Errorf("%s: %d responses", bad.Key, now-sent)
			}
			if n := len(r.server.Store.Rejections()); n != 1 {
				t.Errorf("%s: %d rejections, want one", bad.Key, n)
			}
			before := r.clients[0].content()
			r.apply(append(goodChanges(), bad)...)
			r.checkPrompt(t, bad.Key.String())
			if difference(r.clients[0].content(), before) == "" {
				t.Errorf("%s: what came with it did not arrive", bad.Key)
			}
		})
	}
}

// TestSourceThatGoesAway is invariant I6 for sources: what a source that fell silent or does not read any more has told
// stays in force, and changes of another source go out; also to those who connect now.
func TestSourceThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Shards: 2, Sources: []string{"test", "silent"},
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Build: "test"})
		r := runServer(t, s)
		defer r.stop()
		all := sampleMesh()
		for i := range all {
			all[i].Source = "silent"
		}
		s.Store.Apply(all)
		s.Store.Synced("silent")
		synctest.Wait()
		if ok, _ := s.Ready(); ok {
			t.Error("ready before every source was read")
		}
		s.Store.Synced("test")
		r.everyKindOfProxy()
		s.Store.Reject(ingest.Rejection{Source: "silent", Where: "mesh.yaml:3", Reason: "does not parse"})
		for _, change := range goodChanges()[2:7] {
			before := s.Builder.View()
			r.apply(change)
			r.checkPrompt(t, change.Key.String())
			if s.Builder.View() == before {
				t.Errorf("%s: no View", change.Key)
			}
		}
		if _, ok := r.clients[0].content()["Cluster "+clusterOf("other")]; !ok {
			t.Error("what the silent source told is gone")
		}
	})
}

// TestNothingIsAnsweredFromHalfAWorld: whoever connects before every source was read waits, and is then sent everything
// at once.
func TestNothingIsAnsweredFromHalfAWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Shards: 2, Sources: []string{"test", "silent"},
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Build: "test"})
		r := runServer(t, s)
		defer r.stop()
		s.Store.Apply(sampleMesh())
		s.Store.Synced("test")
		r.connect(nodeOf(0), false)
		r.connect(nodeOf(1), true)
		early := r.clients
		synctest.Wait()
		for _, c := range early {
			if got := c.content(); len(got) > 0 {
				t.Errorf("%d resources before every source was read", len(got))
			}
		}
		s.Store.Synced("silent")
		r.converge()
		late := []*client{r.join(nodeOf(0), false), r.join(nodeOf(1), true)}
		r.converge()
		for i, c := range early {
			if got := c.content(); len(got) == 0 || !maps.Equal(got, late[i].content()) {
				t.Errorf("client %d: %s", i, difference(got, late[i].content()))
			}
		}
	})
}

// runServer runs a Server until stop is called.
func runServer(t testing.TB, s *Server) *running {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	r := &running{t: t, server: s}
	r.stop = func() {
		for _, c := range r.clients {
			c.leave()
		}
		cancel()
		<-done
	}
	return r
}
