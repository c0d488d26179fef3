package discovery

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestReplicasAgree is invariant I10: a server that was given the objects one by one, in a bad order and with detours,
// and one that was given them all at once, tell every proxy the same versions and bytes; only nonces are their own.
func TestReplicasAgree(t *testing.T) {
	for round := range 20 {
		g := generator{rand.New(rand.NewPCG(*seed, uint64(round)))}
		objects := map[value.ObjectKey]ingest.Event{}
		var detours []ingest.Event
		for _, e := range sampleMesh() {
			objects[e.Key] = e
		}
		for range 60 {
			e := g.event()
			detours = append(detours, e)
			if old, ok := objects[e.Key]; ok {
				detours = append(detours, old)
			}
			objects[e.Key] = e
		}
		final := slices.Collect(maps.Values(objects))
		g.Shuffle(len(final), func(i, j int) { final[i], final[j] = final[j], final[i] })
		var one, other map[string]string
		inBubble(t, final, func(_ *testing.T, r *running) { one = r.versions() })
		inBubble(t, nil, func(_ *testing.T, r *running) {
			r.server.Store.Apply(detours)
			for i := range final {
				r.server.Store.Apply(final[i : i+1])
				if g.IntN(4) == 0 {
					synctest.Wait()
				}
			}
			other = r.versions()
		})
		checkVersions(t, one, other)
		if t.Failed() {
			t.Fatalf("seed %d, round %d", *seed, round)
		}
	}
}

// TestEveryNounEncodesTheSame has a hundred servers encode one object of each kind, and what joins them, anew.
func TestEveryNounEncodesTheSame(t *testing.T) {
	var first map[string]string
	for range 100 {
		inBubble(t, sampleMesh(), func(_ *testing.T, r *running) {
			now := r.versions()
			if first == nil {
				first = now
			}
			checkVersions(t, now, first)
		})
		if t.Failed() {
			return
		}
	}
}

// askingForDigest makes TestProcessesAgree print the digest of what it serves.
const askingForDigest = "PILOTD_TEST_DIGEST"

// TestProcessesAgree holds the versions of this process against those of another one, which hashes maps by other seeds.
func TestProcessesAgree(t *testing.T) {
	var own string
	inBubble(t, sampleMesh(), func(_ *testing.T, r *running) {
		h := sha256.New()
		all := r.versions()
		for _, k := range slices.Sorted(maps.Keys(all)) {
			_, _ = fmt.Fprintln(h, k, all[k])
		}
		own = fmt.Sprintf("digest %x of %d", h.Sum(nil), len(all))
	})
	if os.Getenv(askingForDigest) != "" {
		fmt.Println(own)
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestProcessesAgree$")
	cmd.Env = append(os.Environ(), askingForDigest+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), own) {
		t.Errorf("another process says %q (%v), this one %q", out, err, own)
	}
}

// versions returns those of everything that one proxy of each kind is told, by protocol, proxy, type and name: of each
// resource the Delta version and a hash of the bytes, of each type the State-of-the-World version.
func (r *running) versions() map[string]string {
	out := map[string]string{}
	for i, n := range []*corev3.Node{workload("shop", 0), workload("team-b", 0), router(), nodeOf(0), nodeOf(1),
		nodeOf(4)} {
		delta, sotw := r.join(n, true), r.join(n, false)
		for _, x := range delta.responses(0) {
			for name, v := range x.versions {
				out[fmt.Sprint(i, " delta ", kindOf(x.url), " ", name)] = v
			}
		}
		for _, x := range sotw.responses(0) {
			out[fmt.Sprint(i, " sotw ", kindOf(x.url))] = x.version
		}
		for _, c := range []*client{delta, sotw} {
			for name, b := range c.content() {
				out[fmt.Sprint(i, " ", c.delta, " bytes ", name)] = fmt.Sprintf("%x", sha256.Sum256([]byte(b)))
			}
			r.leave(c)
		}
	}
	return out
}

func checkVersions(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			t.Errorf("%s has version %q, elsewhere %q", k, got[k], want[k])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d versions, elsewhere %d", len(got), len(want))
	}
}
