package edge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/e2e/edge"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/snapshot/value"
)

// directory keeps objects in files, one each. Owned by the test's goroutine.
type directory struct {
	*parts.Directory
	t *testing.T
	// applied are the files of generated objects.
	applied map[string]bool
}

func (d *directory) replace(objects []edge.Object) {
	d.t.Helper()
	now := make(map[string]bool)
	for _, o := range objects {
		path := filepath.Join(d.Path, strings.ToLower(fmt.Sprintf("zz_%s_%s_%s.json", o.Key().Kind, o.Key().Namespace,
			o.Key().Name)))
		now[path] = true
		o = o.Copy()
		o.Tree["metadata"].(edge.Tree)["creationTimestamp"] = hostileAge
		if err := os.WriteFile(path+".new", o.JSON(), 0o600); err != nil {
			d.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			d.t.Fatal(err)
		}
	}
	for path := range d.applied {
		if !now[path] {
			if err := os.Remove(path); err != nil {
				d.t.Fatal(err)
			}
		}
	}
	d.applied = now
}

// cluster keeps objects in an API server, which refuses some. Owned by the test's goroutine.
type cluster struct {
	*parts.Cluster
	// applied are the generated objects that are there; refused is what the API server said of those that it did not
	// take.
	applied map[value.ObjectKey]edge.Object
	refused map[value.ObjectKey]string
}

func (c *cluster) replace(objects []edge.Object) {
	now := make(map[value.ObjectKey]edge.Object)
	for _, o := range objects {
		err := c.TryApply(string(o.JSON()))
		if err != nil {
			c.refused[o.Key()] = err.Error()
		}
		// Of an object whose status was refused the rest is there.
		if _, before := c.applied[o.Key()]; err == nil || before || strings.HasPrefix(err.Error(), "status:") {
			now[o.Key()] = o
		}
	}
	for key, o := range c.applied {
		if _, still := now[key]; !still {
			c.Delete(string(o.JSON()))
		}
	}
	c.applied = now
}
