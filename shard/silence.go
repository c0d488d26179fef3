package shard

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/xdstype"
)

// A client that does not answer a response gets nothing more of that type: it becomes stale, and nobody notices. Envoy
// answers endpoints, listeners and routes as soon as it has read them. So a client that does not answer these for a
// while is taken to be stuck, and its stream ends. Clusters are different: Envoy answers when they are warm, which is
// never if a secret does not come (protocol.md 7); but an unanswered response of clusters holds nothing back for long.

// endSilent ends the streams of clients that have not answered for too long while something waits for their answer.
func (w *worker) endSilent() {
	limit, now, types := w.shards.opts.Unanswered, w.now(), w.shards.opts.Types
	switch {
	case limit <= 0 || now.Before(w.silentAt):
		return
	case len(w.roster.groups) == 0:
		w.silentAt = time.Time{}
		return
	case w.silentAt.IsZero():
		w.silentAt = now.Add(limit / 4)
		return
	}
	w.silentAt = now.Add(limit / 4)
	for c := range w.roster.groups {
		for m := range c.members {
			if !m.entered || !m.session.Pending() {
				continue
			}
			for i := range types.Rows() {
				t := xdstype.Type(i)
				if types.WarmedBy(t) != xdstype.None {
					continue
				}
				st := m.session.Status(t)
				if waited := now.Sub(st.Sent.Time); st.Waiting && st.Pending && waited >= limit {
					w.shards.opts.Metrics.Unanswered(t)
					m.stream.Close(status.Errorf(
						codes.DeadlineExceeded,
						"the client has not answered an %s response for %v, and there is news",
						types.Row(t).Short,
						waited,
					))
					break
				}
			}
		}
	}
}
