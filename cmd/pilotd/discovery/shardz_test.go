package discovery

import (
	"encoding/json"
	"strings"
	"testing"
)

// The page of the shards tells who waits, and for what.
func TestShardz(t *testing.T) {
	inBubble(t, sampleMesh(), func(t *testing.T, r *running) {
		r.everyKindOfProxy()
		page, err := r.server.Pages()["shardz"](nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"Members":`, `"Connecting":0`, `"underway_bytes":0`,
			`"underway_limit":268435456`, `"unwritten_bytes":0`, `"waiting":[]`} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s is not in %s", want, b)
			}
		}
	})
}
