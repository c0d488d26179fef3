package value

import "reflect"

// Routing is what a routing object says: where requests and connections go that are made to its hosts. It is neutral of
// the API that the object comes from. A slice without elements is nil.
type Routing struct {
	// Hosts are fully qualified names and wildcard patterns.
	Hosts []string
	// Gateways are those at which the routes hold: "namespace/name", or "mesh" for all sidecars.
	Gateways []string
	// Of the routes of a kind the first that matches counts. HTTP are for requests, TLS for connections by their server
	// name, TCP for all other connections.
	HTTP []*HTTPRoute
	TLS  []*StreamRoute
	TCP  []*StreamRoute
}

// HasStreams reports whether there are routes for connections, and not only for requests.
func (r *Routing) HasStreams() bool { return len(r.TCP)+len(r.TLS) > 0 }

// Equal reports whether two routings say the same.
func (r *Routing) Equal(o *Routing) bool { return r == o || reflect.DeepEqual(r, o) }

// Destination is where traffic goes. Comparable.
type Destination struct {
	Host   string
	Subset string
	// Port is 0 for the port that was called.
	Port int
}

// WeightedDestination is one of the destinations of a route. Where there are several, one without weight gets nothing.
type WeightedDestination struct {
	Destination
	Weight uint32
	// Headers are changed in what goes to this destination alone; only of HTTP routes.
	Headers *HeaderChanges
}

// StreamRoute is a route for connections.
type StreamRoute struct {
	// Matches are alternatives; without any, a TCP route takes all connections.
	Matches      []*StreamMatch
	Destinations []WeightedDestination
}

// StreamMatch is a condition on connections: all that is set must hold.
type StreamMatch struct {
	Client
	// ServerNames are the names by which the client asks; only of TLS routes.
	ServerNames []string
	// Subnets are destination addresses and ranges.
	Subnets []string
	// Port is the port that was called; 0 is any.
	Port int
}

// Client is a condition on who makes a request or connection, which is decided beforehand for each client.
type Client struct {
	// Gateways are those of the Routing's to which the match is limited; empty: all.
	Gateways []string
	// Labels are labels that a sidecar's workload must have, and Namespace the one that it must be in.
	Labels    Labels
	Namespace string
}

// HTTPRoute is a route for requests. At most one of Redirect and Response is set; without them it forwards to
// Destinations.
type HTTPRoute struct {
	Name string
	// Matches are alternatives; without any, the route takes all requests.
	Matches []*HTTPMatch

	Redirect     *HTTPRedirect
	Response     *DirectResponse
	Destinations []WeightedDestination

	// What else becomes of requests that the route takes.
	Mirrors []Mirror
	Rewrite *Rewrite
	Timeout Duration
	Retries *Retries
	Fault   *Fault
	CORS    *CORS
	Headers *HeaderChanges
}

// Leads reports whether the route does anything with requests.
func (r *HTTPRoute) Leads() bool {
	return len(r.Destinations) > 0 || r.Redirect != nil || r.Response != nil
}

// HTTPMatch is a condition on requests: all that is set must hold.
type HTTPMatch struct {
	Client
	// Name is added to the name of the route, and StatPrefix names statistics.
	Name, StatPrefix string
	// Port is the port that was called; 0 is any.
	Port int

	Path       *StringMatch
	IgnoreCase bool // of the path

	Scheme, Method, Authority *StringMatch

	// Headers must match, and WithoutHeaders must not; both and Query, the parameters, are sorted by name.
	Headers, WithoutHeaders, Query []NamedMatch
}

// HTTPRedirect is an answer that sends the client elsewhere. What is empty stays as it was asked for.
type HTTPRedirect struct {
	Scheme, Authority, Path string
	// Code is the status; 0 is 301.
	Code uint32
	// Port is the port to go to; 0 is that of the scheme, or the one that was called with SamePort.
	Port     uint32
	SamePort bool
}

// DirectResponse is an answer that is given without asking a server.
type DirectResponse struct {
	Status uint32
	Body   string
	Form   BodyForm
}

// BodyForm is the form in which the body of an answer was given.
type BodyForm uint8

// The forms of a body.
const (
	NoBody BodyForm = iota
	TextBody
	BytesBody
)

// Mirror is a destination that gets copies of requests.
type Mirror struct {
	Destination
	Share Fraction
}

// Rewrite changes the path and the authority of requests. What is empty stays.
type Rewrite struct {
	Path, Authority string
	// Regex replaces what an expression matches in the path; nil where Path replaces what was matched.
	Regex *RegexRewrite
}

// RegexRewrite replaces what an expression matches.
type RegexRewrite struct {
	Match, Substitution string
}

// Retries say how often and when a request is tried again. Comparable.
type Retries struct {
	Attempts uint32
	// On are conditions and status codes, joined by commas; empty for the usual ones.
	On               string
	PerTryTimeout    Duration
	Backoff          Duration
	AvoidHosts       OptionalBool // that failed before
	RemoteLocalities bool
}

// Fault is what goes wrong on purpose. Comparable.
type Fault struct {
	// Delay is unset for none.
	Delay   Duration
	Delayed Fraction
	// Abort says what Status is.
	Abort   AbortKind
	Status  uint32
	Aborted Fraction
}

// AbortKind is the kind of answer that an aborted request gets.
type AbortKind uint8

// The kinds of answers.
const (
	NoAbort AbortKind = iota
	HTTPAbort
	GRPCAbort
)

// CORS is what scripts of pages of other origins may do.
type CORS struct {
	Origins                                   []StringMatch
	AllowHeaders, AllowMethods, ExposeHeaders []string
	MaxAge                                    Duration // in whole seconds
	AllowCredentials                          OptionalBool
	IgnoreUnmatched                           bool // requests that ask before others and match no origin
}

// HeaderChanges are the changes of headers on the way to the server and back.
type HeaderChanges struct {
	Request, Response HeaderEdits
}

// HeaderEdits are changes of headers. Set and Add are sorted by name.
type HeaderEdits struct {
	Set, Add []Header
	Remove   []string
}

// Header is a header with its value.
type Header struct {
	Name, Value string
}
