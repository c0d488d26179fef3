package ads

import "github.com/pilotd/pilotd/xdstype"

// reply takes the ACK or NACK of the response that r.Nonce names. It reports false if the response is none of those
// that are known.
func (t *turn) reply(typ xdstype.Type, r *Request) bool {
	st := &t.types[typ]
	i := len(st.flights) - 1
	for i >= 0 && st.flights[i].batch.Nonce != r.Nonce {
		i--
	}
	if i < 0 {
		return r.Nonce == st.log.nonce() // a further request about a response that was ACKed before
	}
	f := st.flights[i]
	t.answered = true
	t.read = max(t.read, f.seq)
	if i > 0 { // what was sent before f has been taken, or its refusal would have come
		st.accepted = st.flights[i-1].to
	}
	st.flights = append(st.flights[:0:0], st.flights[i+1:]...)
	if len(st.flights) == 0 {
		st.waiting = false
		st.flights = nil
	}
	if r.Error != nil {
		t.about(typ).refused(f, r.Error.GetMessage())
		return true
	}
	t.accepted(typ, f)
	for i := range t.types { // the client is past what it was sent before, whatever that ACK waits for
		if cds := &t.types[i]; typ != xdstype.Type(i) && cds.waiting && t.warms(xdstype.Type(i)) &&
			cds.newest().seq < f.seq {
			cds.waiting = false
		}
	}
	return true
}

func (t *turn) accepted(typ xdstype.Type, f flight) {
	st := &t.types[typ]
	st.accepted = f.to
	t.about(typ).retry(f)
	st.log.acked(f.batch, t.now, st.refusal.quarantined() == nil)
	if st.doubt && len(st.flights) == 0 && st.force == nil {
		st.doubt = false
		t.emit(Effect{Kind: Certain, Type: typ})
	}
	switch {
	case !st.doubt:
		st.initial = nil
	case st.initial != nil:
		st.initial.forget(f.batch.about())
	}
}
