package ads

// Current reports whether the first request of a stream proves that the client has what is desired: all clusters, or
// all listeners, at their versions. A client that asks for endpoints or routes first has something that waits for them
// (protocol.md 1), so it proves nothing.
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
