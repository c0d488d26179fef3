package plan

import "github.com/pilotd/pilotd/snapshot/value"

// choice returns the selector of an object that decides something about the workloads of its namespace, or of all where
// it is in the root namespace. ok is false for other objects. An empty selector chooses all.
func choice(v value.Value) (selector value.Labels, ok bool) {
	switch v := v.(type) {
	case *value.Sidecar:
		if v != nil {
			return v.Selector(), true
		}
	case *value.PeerAuthentication:
		if v != nil {
			return v.Labels, true
		}
	case *value.AuthorizationPolicy:
		if v != nil {
			return v.Choice(), true
		}
	case *value.RequestAuthentication:
		if v != nil {
			return v.Choice(), true
		}
	}
	return nil, false
}
