package value

import "fmt"

// AuthorizationProvider is a server that decides about requests and connections. Immutable.
type AuthorizationProvider struct {
	Name string
	// GRPC is whether it speaks gRPC. One that speaks HTTP knows nothing of connections of bytes.
	GRPC bool
	// Host and Port are its service's. Namespace is that of the service, empty if only one has the host.
	Namespace, Host string
	Port            int
	// Problem says why it cannot be asked as it is described; empty if it can.
	Problem string

	// Timeout is how long an answer may take; unset for the usual time. FailOpen lets pass what was not answered.
	Timeout  Duration
	FailOpen bool
	// StatusOnError is what a client is told when there was no answer; 0 for 403.
	StatusOnError uint32
	// ClearRouteCache chooses the route again after the answer.
	ClearRouteCache bool
	// Body is how much of a request's body it is shown; nil for nothing.
	Body *CheckedBody

	// What follows is for HTTP. PathPrefix begins the paths that it is asked with. RequestHeaders are names of those
	// that it is shown, Added others.
	PathPrefix     string
	RequestHeaders []string
	Added          []Header
	// Of its answer's headers these go to the application, and to the client where it denies or allows.
	Upstream, Denied, Allowed []string
}

// CheckedBody is the part of a request's body that an AuthorizationProvider is shown. Comparable.
type CheckedBody struct {
	Most uint32
	// Partial shows the beginning of a longer one, which is refused otherwise. Bytes shows it as it is, not as text.
	Partial, Bytes bool
}

// Asked is the server that the policies of CustomAction of a workload ask. The zero Asked: there is no such policy.
// Comparable.
type Asked struct {
	// Provider is nil where none can be asked, for the Problem.
	Provider *AuthorizationProvider
	Problem  string
}

// Unseen is what workloads ask whose proxies know nothing of the server's service: nobody.
func (p *AuthorizationProvider) Unseen() Asked {
	return Asked{Problem: fmt.Sprintf("extension provider %q: the Sidecar of the workload does not import service %s",
		p.Name, p.Host)}
}
