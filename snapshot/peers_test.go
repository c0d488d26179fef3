package snapshot_test

import (
	"strings"
	"testing"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/snapshottest"
	"github.com/pilotd/pilotd/snapshot/value"
)

// peers makes a policy out of "namespace/name age labels mode port=mode…", where "-" stands for none.
func peers(t *testing.T, text string) *value.PeerAuthentication {
	t.Helper()
	mode := func(s string) *value.MTLSMode {
		m, ok := map[string]value.MTLSMode{"permissive": value.Permissive, "strict": value.Strict,
			"plain": value.Disabled}[s]
		if !ok {
			return nil
		}
		return &m
	}
	words := strings.Fields(text)
	namespace, name, _ := strings.Cut(words[0], "/")
	p := &value.PeerAuthentication{Meta: value.Meta{Namespace: namespace, Name: name, Created: int64(words[1][0])},
		Mode: mode(words[3]), Ports: map[uint32]*value.MTLSMode{}}
	if k, v, ok := strings.Cut(words[2], "="); ok {
		p.Labels = value.Labels{k: v}
	}
	for _, w := range words[4:] {
		port, m, _ := strings.Cut(w, "=")
		p.Ports[map[string]uint32{"80": 80, "9000": 9000}[port]] = mode(m)
	}
	return p
}

// TestPeerPolicies: of the mesh's, the namespace's and a workload's policy the narrowest that says something counts, of
// several of one reach the oldest, then the first by name.
func TestPeerPolicies(t *testing.T) {
	for name, r := range map[string]struct {
		policies string
		want     string // modes of ports 80, 9000 and 1 of a workload app=web in namespace shop
		plain    bool
	}{
		"nothing":                            {"", "000", false},
		"mesh":                               {"root/a 1 - strict", "111", false},
		"another namespace":                  {"other/a 1 - strict", "000", false},
		"namespace over mesh":                {"root/a 1 - strict; shop/a 1 - plain", "222", true},
		"namespace takes the mesh's over":    {"root/a 1 - strict; shop/a 1 - unset", "111", false},
		"the older one that says nothing":    {"shop/a 1 - unset; shop/b 2 - strict", "000", false},
		"the first by name of equal age":     {"shop/b 1 - plain; shop/a 1 - strict", "111", false},
		"workload":                           {"shop/a 1 - strict; shop/b 2 app=web plain", "222", true},
		"another workload's":                 {"shop/a 1 - strict; shop/b 2 app=api plain", "111", true},
		"workload takes over":                {"shop/a 1 - strict; shop/b 2 app=web unset", "111", false},
		"the oldest of a workload":           {"shop/a 2 app=web plain; shop/b 1 app=web strict", "111", true},
		"ports":                              {"shop/a 1 app=web strict 80=plain 9000=permissive", "201", true},
		"a port takes the workload's over":   {"root/a 1 - plain; shop/a 1 app=web strict 80=unset", "111", true},
		"a port takes the mesh's over":       {"root/a 1 - strict; shop/a 1 app=web unset 80=unset 9000=plain", "121", true},
		"the root namespace selects nothing": {"root/a 1 app=web strict 80=plain", "000", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := snapshot.NewBuilder(nil)
			batch := &snapshottest.Batch{Objects: map[value.ObjectKey]value.Value{},
				Mesh: &value.Mesh{RootNamespace: "root"}}
			for text := range strings.SplitSeq(r.policies, ";") {
				if strings.TrimSpace(text) != "" {
					p := peers(t, text)
					batch.Objects[p.Object()] = p
				}
			}
			snapshottest.Apply(b, batch)
			of := b.View().Snapshot.PeerPolicies("shop")
			modes, got := of.Of(value.Labels{"app": "web", "v": "1"}), ""
			for _, port := range []int{80, 9000, 1} {
				got += string('0' + rune(modes.At(port)))
			}
			if got != r.want || of.Plain() != r.plain {
				t.Errorf("modes %s, want %s; plain: %v", got, r.want, of.Plain())
			}
		})
	}
}

// TestPeerPoliciesFollowEdits: what stays the same keeps its pointer, and the mesh's policy reaches the namespaces that
// have policies of their own.
func TestPeerPoliciesFollowEdits(t *testing.T) {
	b := snapshot.NewBuilder(nil)
	apply := func(root string, texts ...string) {
		batch := &snapshottest.Batch{Objects: map[value.ObjectKey]value.Value{}}
		if root != "" {
			batch.Mesh = &value.Mesh{RootNamespace: root}
		}
		for _, text := range texts {
			if p := peers(t, strings.TrimPrefix(text, "!")); strings.HasPrefix(text, "!") {
				batch.Objects[p.Object()] = nil
			} else {
				batch.Objects[p.Object()] = p
			}
		}
		snapshottest.Apply(b, batch)
	}
	of := func(namespace string) *value.PeerPolicies { return b.View().Snapshot.PeerPolicies(namespace) }
	mode := func(namespace string) value.MTLSMode { return of(namespace).Of(nil).Mode }
	apply("root", "shop/a 1 app=web strict", "team/a 1 - plain")
	shop := of("shop")
	apply("", "other/a 1 - strict")
	if of("shop") != shop {
		t.Error("another namespace's policy makes new ones")
	}
	apply("", "root/a 1 - strict")
	if mode("shop") != value.Strict || mode("team") != value.Disabled || mode("none") != value.Strict {
		t.Errorf("under the mesh's: %d %d %d", mode("shop"), mode("team"), mode("none"))
	}
	apply("team")
	if mode("shop") != value.Disabled || mode("root") != value.Strict || mode("none") != value.Disabled {
		t.Errorf("under another root: %d %d %d", mode("shop"), mode("root"), mode("none"))
	}
	apply("root", "!root/a 1 - strict", "!shop/a 1 - -")
	if mode("shop") != value.Permissive || mode("root") != value.Permissive {
		t.Errorf("without the mesh's: %d %d", mode("shop"), mode("root"))
	}
}
