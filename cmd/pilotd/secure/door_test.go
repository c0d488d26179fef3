package secure

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilotd/pilotd/xdstype"
)

// Many agents that come at once are all answered, at the first attempt of each, though others that came before them say
// nothing; who is connected is answered meanwhile.
func TestCrowdOfAgents(t *testing.T) {
	inHouse(t, func(h *house) {
		connected := h.open("web", agent{})
		defer connected.close()
		connected.send(&discoveryv3.DeltaDiscoveryRequest{Node: node("sidecar", "shop", "web"), TypeUrl: xdstype.ClusterURL})
		connected.next(xdstype.ClusterURL)
		silent := make([]net.Conn, 2*handshakes)
		for i := range silent {
			conn, err := h.listener.Dial()
			if err != nil {
				h.t.Fatal(err)
			}
			silent[i] = conn
			defer conn.Close()
		}
		synctest.Wait()
		if s := h.secure.door.Load().Stats(); s.Underway != handshakes || s.Waiting != handshakes {
			h.t.Errorf("%+v", s)
		}
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() { h.begins("web", node("sidecar", "shop", "web"), agent{}) })
		}
		synctest.Wait()
		connected.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstype.ListenerURL})
		connected.next(xdstype.ListenerURL)
		begin := time.Now()
		all.Wait()
		if d := time.Since(begin); d > 15*time.Second {
			h.t.Errorf("they had to wait for %v", d)
		}
		synctest.Wait()
		if s := h.secure.door.Load().Stats(); s.Done != 201 || s.Slow != 2*handshakes || s.Failed+s.Dropped+s.Gone != 0 {
			h.t.Errorf("%+v", s)
		}
	})
}
