package discovery

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/proxy"
	"github.com/pilotd/pilotd/shard"
)

// A client that refuses without end fills no log: a few refusals are logged, each in a short line, and the next line
// says how many were not.
func TestRefusalsAreLoggedAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newRefusalLog(slog.New(slog.NewTextHandler(&out, nil)))
		r := &shard.Refusal{Proxy: &proxy.Proxy{ID: "sidecar~1.1.1.1~a.b~c"}, Message: strings.Repeat("m", 4096)}
		for i := range 10_000 {
			r.Names = append(r.Names, fmt.Sprint("outbound|80||host-", i))
		}
		for range 1000 {
			l.tell(r)
		}
		if n := strings.Count(out.String(), "\n"); n != refusalBurst || out.Len() > n*5000 {
			t.Errorf("%d lines of %d bytes for 1000 refusals", n, out.Len())
		}
		if !strings.Contains(out.String(), "moreResources=9990") {
			t.Error("it is not told how many resources there are")
		}
		out.Reset()
		time.Sleep(time.Second)
		l.tell(r)
		if !strings.Contains(out.String(), fmt.Sprint("refusalsNotLogged=", 1000-refusalBurst)) {
			t.Error("it is not told how many refusals there were:", out.String())
		}
	})
}
