package ads

// Current reports whether a client proves by the first request of its stream to have what is desired: all clusters, or
// all listeners, at their versions. One that asks for endpoints or routes first has something that waits for them
// (protocol.md 1).
func (b *Differ) Current(r *Request, desired Desired) bool {
	typ, served := b.rows.Of(r.TypeURL)
	if !served || !b.rows.Row(typ).Complete || r.Names != nil || r.Subscribe != nil && !r.Subscribe.Contains(wildcard) {
		return false
	}
	section := desired.Resources(typ, Subscription{All: true}).section()
	if !r.Delta {
		return r.Version == digestOfSection(section).version()
	}
	return r.Initial != nil && r.Initial.fingerprint == b.fingerprintOfSection(section)
}
