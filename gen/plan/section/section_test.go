package section

import (
	"testing"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// A resource that is left out does not stay as it was.
func TestPutOfAnAbsentEntryDrops(t *testing.T) {
	var e Edits
	Put(&e, encodecache.NewAbsent(xdstype.RouteURL, "a"))
	if v, ok := e["a"]; !ok || v != nil {
		t.Error("a resource that is left out stays as it was")
	}
}
