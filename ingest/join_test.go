package ingest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestPatchEqualsJoin changes parts of a joint at random, with addresses that now and then are in two parts.
func TestPatchEqualsJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, patched := &joint{clean: true}, 0
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			name := objectName{name: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "part")}
			next := &joint{parts: map[objectName][]*value.Endpoint{}, clean: j.clean}
			for n, part := range j.parts {
				next.parts[n] = part
			}
			part := keep(j.parts[name], drawPart(t, name.name))
			next.parts[name] = part
			if j.clean && next.patch(j.list, j.parts[name], slices.Clone(part)) {
				patched++
			} else {
				next.join()
			}
			whole := &joint{parts: next.parts}
			whole.join()
			if !slices.EqualFunc(next.list, whole.list, (*value.Endpoint).Equal) || next.clean != whole.clean {
				t.Fatalf("patched %v, joined %v", shown(next.list), shown(whole.list))
			}
			j = next
		}
	})
}

func drawPart(t *rapid.T, part string) []*value.Endpoint {
	var out []*value.Endpoint
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 6, rapid.ID).Draw(t, "endpoints") {
		address := fmt.Sprintf("%02d%s", n, part)
		if n == 0 {
			address = "00" // All parts have it.
		}
		port := value.EndpointPort{Name: rapid.SampledFrom([]string{"http", "tcp"}).Draw(t, "port"), Port: 80}
		out = append(out, &value.Endpoint{
			Addresses: []string{address}, Ports: []value.EndpointPort{port},
			Identity: (&joiner{}).origin(person{}).identity,
			Health:   rapid.SampledFrom([]value.Health{value.Healthy, value.Unhealthy}).Draw(t, "health"),
		})
	}
	slices.SortFunc(out, compareEndpoints)
	return out
}

func shown(list []*value.Endpoint) []string {
	var out []string
	for _, e := range list {
		out = append(out, showEndpoint(e))
	}
	return out
}
