package value

import "reflect"

// KindGateway is Istio's Gateway; the Gateway API has a kind of that name too.
const KindGateway Kind = "Gateway.networking.istio.io"

// Gateway is an object that says what routers listen for.
type Gateway struct {
	Meta
	GatewaySettings
}

// Selector returns the labels of the routers that the Gateway is for, in any namespace; nil for all of them.
func (g *Gateway) Selector() Labels { return g.Workload }

// Kind returns KindGateway.
func (g *Gateway) Kind() Kind { return KindGateway }

// Object returns the key of the Gateway.
func (g *Gateway) Object() ObjectKey { return g.Meta.Object(g.Kind()) }

// Equal reports whether two gateways are the same.
func (g *Gateway) Equal(o *Gateway) bool {
	return g == o || g.Meta == o.Meta && reflect.DeepEqual(g.GatewaySettings, o.GatewaySettings)
}

// GatewaySettings are what an object says of routers. It is neutral of the API that the object comes from. A slice
// without elements is nil.
type GatewaySettings struct {
	// Workload are labels of the routers; nil: all of them.
	Workload Labels
	Servers  []*Server
}

// Server is one port of routers and what they do there.
type Server struct {
	// Port is the one that clients call. Its name tells the servers of an object apart; its protocol is one that routers
	// know: TCP where they read nothing of what comes.
	Port ListenerPort
	// Bind is the address to listen on; empty for all.
	Bind string
	// Name names the statistics; it may be empty.
	Name  string
	Hosts []ServerHost
	// TLS is nil where the object says nothing of it. A server of plain HTTP may have it too: it neither begins nor ends
	// TLS then, but has its hosts for itself alone, as servers that look at TLS do.
	TLS *ServerTLS
	// Redirect sends clients that ask in plain text to HTTPS.
	Redirect bool
}

// Equal reports whether two servers are the same.
func (s *Server) Equal(o *Server) bool { return s == o || reflect.DeepEqual(s, o) }

// ServerHost is a host that a server takes calls to. Comparable.
type ServerHost struct {
	// Namespace is that of the routing objects that may have routes for the host; "*" for all.
	Namespace string
	// Host is a name or a pattern.
	Host string
}

// ServerTLS is what a server does with TLS. The certificates are those of Credentials, or else files; of the workload
// itself with MeshTLS.
type ServerTLS struct {
	// Mode is NoTLS of no server.
	Mode TLSMode

	// Credentials name secrets of the control plane: one for each kind of key. Certificates are files of the router.
	Credentials  []string
	Certificates []CertificateFiles
	// RootCredential names the secret with the roots that clients' certificates are checked by, and Root is the file with
	// them. Without either they are those of the first of the Credentials.
	RootCredential, Root string
	// CRL is the file with lists of revoked certificates; empty: those of the roots' secret.
	CRL string

	// Names are those that a client's certificate may have; nil: any. Hashes and KeyHashes are of the certificates and of
	// the public keys that clients may have.
	Names, Hashes, KeyHashes []string

	// MinVersion and MaxVersion are of TLS, Ciphers the suites of it; nil: the mesh's.
	MinVersion, MaxVersion TLSVersion
	Ciphers                []string
}

// CertificateFiles are the files with a certificate and its private key.
type CertificateFiles struct{ Certificate, Key string }
