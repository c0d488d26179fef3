package kube

import (
	"strings"
	"testing"

	"github.com/pilotd/pilotd/ingest/sinktest"
)

// TestObjectsOfOtherRevisions labels objects: those of another revision are as good as not there, and one that changes
// hands comes or goes.
func TestObjectsOfOtherRevisions(t *testing.T) {
	labelled := func(name, host, revision string) string {
		return strings.Replace(vs("v1", name, host), `"metadata":{`,
			`"metadata":{"labels":{"istio.io/rev":"`+revision+`"},`, 1)
	}
	for _, c := range []struct{ revision, ours string }{{"canary", "canary"}, {"", "default"}, {"default", "default"}} {
		t.Run(c.revision, func(t *testing.T) {
			api := newFakeAPI(t)
			api.put(crdPath, crd("virtualservices"))
			api.put(vsPath, vs("v1", "all", "all.com"))
			api.put(vsPath, labelled("ours", "ours.com", c.ours))
			api.put(vsPath, labelled("theirs", "theirs.com", "other"))
			r := start(t, Options{Config: api.config(), Revision: c.revision, MeshElsewhere: true})
			r.Until(t, "sync", synced)
			told := r.Now()
			if host(told, "all") != "all.com" || host(told, "ours") != "ours.com" || has(virtualService("theirs"))(told) {
				t.Fatalf("have %v", told.Objects)
			}
			api.put(vsPath, labelled("ours", "ours.com", "other"))
			r.Until(t, "it is given away", func(told *sinktest.Told) bool { return !has(virtualService("ours"))(told) })
			api.put(vsPath, labelled("theirs", "theirs.com", c.ours))
			r.Until(t, "one is taken over", hosts("theirs", "theirs.com"))
			api.delete(vsPath, "default/theirs")
			r.Until(t, "it ends", func(told *sinktest.Told) bool { return !has(virtualService("theirs"))(told) })
		})
	}
}
