package shard

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

// A client that answers nothing is cut off when news waits for its answer, and not before its time. One that leaves
// clusters unanswered is warming, and is left alone whatever happens.
func TestUnanswered(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		f.shards.opts.Unanswered = time.Minute
		f.table("x=1")
		c, w := class("c"), f.set("x=1", "r=1")
		join := func(name string) *fakeStream {
			s := f.connect(name).place(c, w)
			s.take()
			s.endpoints("x").take()
			s.ask(ads.Request{TypeURL: xdstype.RouteURL, Subscribe: f.shards.opts.Names.Of([]string{"r"})}).take()
			return s
		}
		good, warming, mute, idle := join("good"), join("warming"), join("mute"), join("idle")
		nonce := map[*fakeStream]string{} // of the last endpoints
		for _, s := range []*fakeStream{good, warming, mute, idle} {
			s.onReceive = func() {
				if n := len(s.got) - 1; s.urls[n] == xdstype.EndpointURL {
					nonce[s] = s.got[n].Nonce()
				}
			}
		}
		answer := func(s *fakeStream) { s.ask(ads.Request{TypeURL: xdstype.EndpointURL, Nonce: nonce[s]}) }
		ended := func(s *fakeStream) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.closed != nil
		}
		f.advance(c, f.set("x=2", "r=1"))
		for _, s := range []*fakeStream{good, warming, mute, idle} {
			expect(t, "change", s.read(s == good), "CDS x=2; EDS x=1")
			if s != good && s != mute {
				answer(s)
			}
		}
		time.Sleep(10 * time.Minute)
		for _, s := range []*fakeStream{good, warming, mute, idle} {
			if ended(s) {
				t.Fatalf("%d was cut off though nothing waits for it", s.id)
			}
		}
		f.table("x=2")
		good.take()
		expect(t, "warming", warming.read(false), "EDS x=2")
		answer(warming)
		expect(t, "idle", idle.read(false), "EDS x=2") // and says nothing any more
		time.Sleep(20 * time.Second)
		if !ended(mute) || status.Code(mute.closed) != codes.DeadlineExceeded ||
			!strings.Contains(mute.closed.Error(), "has not answered an EDS response for 10m") {
			t.Errorf("mute: %v", mute.closed)
		}
		for i := range 20 {
			f.advance(c, f.set("x="+nodeName(i), "r=1"))
			f.table("x=" + nodeName(i))
			good.take()
			good.take()
			for got := warming.read(false); got != ""; got = warming.read(false) {
				answer(warming)
			}
			if ended(idle) && i < 8 {
				t.Fatal("idle was cut off too early")
			}
			time.Sleep(5 * time.Second)
		}
		if !ended(idle) || ended(warming) || ended(good) {
			t.Errorf("cut off: idle %v, warming %v, good %v", idle.closed, warming.closed, good.closed)
		}
	})
}
