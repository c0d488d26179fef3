package shard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/shard/ads"
)

// A client with an answer on its way is told all the same that names of a type that is not served do not exist, for
// gateways ask for routes and secrets at once and wait for both. One that reads nothing costs no more than maxBesides.
func TestUnservedIsAnsweredBesideOthers(t *testing.T) {
	withFleet(t, 1, func(f *fleet) {
		const unserved = "type.googleapis.com/example.Unserved"
		s := f.connect("gateway").place(class("c"), f.set("x=1", ""))
		s.setBacklog(true)
		s.take()
		asks := func(name string) int {
			before := s.holds()
			s.ask(ads.Request{TypeURL: unserved, Subscribe: f.shards.opts.Names.Of([]string{name})})
			return s.holds() - before
		}
		if asks("secret") != 1 {
			t.Fatal("no answer beside another that was not read")
		}
		long, answers := strings.Repeat("n", 1000), 0
		for i := range 100 {
			answers += asks(fmt.Sprint(i, long))
		}
		if answers == 0 || answers > maxBesides/len(long) {
			t.Errorf("%d answers of %d bytes to a client that reads nothing", answers, len(long))
		}
		assembled := f.shards.Stats()[0].Assembled
		if asks(long+"more") != 0 || f.shards.Stats()[0].Assembled != assembled {
			t.Error("what is not sent was assembled")
		}
		s.setBacklog(false)
		if asks("another") != 1 {
			t.Error("no answer after everything was read")
		}
		if asks(strings.Repeat("n", 2*maxBesides)) != 1 {
			t.Error("a client that reads gets no long answer")
		}
		if asks(strings.Repeat("n", maxUnserved)) != 0 {
			t.Error("an answer has no bound")
		}
		s.setBacklog(true)
		if asks("after that") != 0 {
			t.Error("a long answer that may not have been read does not count")
		}
	})
}
