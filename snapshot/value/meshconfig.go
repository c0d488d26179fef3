package value

import (
	"reflect"
	"slices"
)

// KindMeshConfig is the mesh configuration, which is part of a ConfigMap or a file.
const KindMeshConfig Kind = "MeshConfig"

// Mesh is the mesh-wide configuration with all defaults applied. It stands in parts by who reads them, so that a Key
// holds the parts that its generator reads and nothing else: a part that did not change keeps its pointer (see Keep),
// and with it the Keys that hold it. No part is nil in a Mesh that ingest made. Comparable.
type Mesh struct {
	// DomainSuffix is the cluster's DNS domain, "cluster.local".
	DomainSuffix string
	// ClusterID names this cluster, "Kubernetes".
	ClusterID string
	// RootNamespace is where mesh-wide objects live.
	RootNamespace string

	// Ports at which sidecars get what is intercepted.
	OutboundPort, InboundPort int
	// Detection is how long an inspector may wait for bytes of the client; unset or 0 is without limit.
	Detection Duration
	// Loopback: sidecars forward to their application at the loopback interface.
	Loopback bool
	// InboundStat is the pattern of the names of statistics of inbound clusters; empty for none.
	InboundStat string
	// ProxyProtocol: what stands before gateways tells the client's address first.
	ProxyProtocol bool

	Outbound    *OutboundPolicy
	HTTP        *HTTPSettings
	Routes      *RouteSettings
	Connections *ConnectionSettings
	Clusters    *ClusterSettings
	Peers       *PeerSettings
	Servers     *ServerSettings
	Access      *AccessSettings
}

// Object returns the key of the mesh's configuration: there is one.
func (m *Mesh) Object() ObjectKey { return ObjectKey{Kind: KindMeshConfig} }

// Keep gives m the parts of old that are equal to its own. Then m == old as values if nothing differs.
func (m *Mesh) Keep(old *Mesh) {
	keep(&m.Outbound, old.Outbound)
	keep(&m.HTTP, old.HTTP)
	keep(&m.Routes, old.Routes)
	keep(&m.Connections, old.Connections)
	m.Clusters.keep(old.Clusters)
	keep(&m.Clusters, old.Clusters)
	keep(&m.Peers, old.Peers)
	keep(&m.Servers, old.Servers)
	keep(&m.Access, old.Access)
}

// Locality says how localities share traffic where no policy does; the empty setting where the mesh says nothing.
func (m *Mesh) Locality() *LocalityBalancing {
	if m.Clusters.Locality == nil {
		return &LocalityBalancing{}
	}
	return m.Clusters.Locality
}

// keep puts old in the place of an equal part.
func keep[P any](part **P, old *P) {
	if reflect.DeepEqual(*part, old) {
		*part = old
	}
}

// OutboundPolicy is what sidecars do with traffic to unknown hosts.
type OutboundPolicy struct {
	Mode OutboundMode
	// TLS is begun with hosts that the proxy resolves itself; nil for none.
	TLS *ClientTLS
}

// OutboundMode is where traffic to unknown hosts goes.
type OutboundMode uint8

// The modes.
const (
	AllowAny OutboundMode = iota
	RegistryOnly
	AllowAnyDynamicDNS
)

// HTTPSettings are what HTTP connection managers read. Comparable.
type HTTPSettings struct {
	// ServerName is what the proxy calls itself to clients; empty for its usual name. KeepServer passes on what the
	// application says.
	ServerName string
	KeepServer bool
	// NoRequestID: requests get no x-request-id. NoDebugHeaders: no headers of Envoy's own.
	NoRequestID, NoDebugHeaders bool
	// MetadataInMesh: requests that leave the mesh tell nothing of the proxy.
	MetadataInMesh bool
	// ForwardCert says what servers are told of a client's certificate, and Cert which parts of it.
	ForwardCert ForwardCert
	Cert        CertDetails
	Paths       PathNormalization
	// TrustedProxies is how many proxies before a gateway are trusted; GatewayCert what gateways tell of certificates.
	TrustedProxies uint32
	GatewayCert    ForwardCert
}

// CertDetails are parts of a client's certificate; what is unset is the listener's to say. Comparable.
type CertDetails struct {
	Subject, Cert, Chain, DNS, URI OptionalBool
}

// ForwardCert is what becomes of the header that tells of a client's certificate.
type ForwardCert uint8

// What becomes of it.
const (
	ForwardUnset ForwardCert = iota
	Sanitize
	ForwardOnly
	AppendForward
	SanitizeSet
	AlwaysForwardOnly
)

// PathNormalization is what becomes of the paths of requests before anything looks at them.
type PathNormalization uint8

// What becomes of them; each does what those before it do.
const (
	NormalizePaths PathNormalization = iota
	LeavePaths
	MergeSlashes
	DecodeSlashes
)

// RouteSettings are what virtual hosts read.
type RouteSettings struct {
	// Retries are those of routes that say nothing of them; nil for the usual ones.
	Retries *Retries
	// CountAttempts: upstream requests carry x-envoy-attempt-count.
	CountAttempts bool
}

// ConnectionSettings are what every cluster reads. Comparable.
type ConnectionSettings struct {
	ConnectTimeout Duration
	Keepalive      Keepalive
}

// ClusterSettings are what outbound clusters read.
type ClusterSettings struct {
	Connections *ConnectionSettings
	// Pool, Outlier and Locality count where no policy says anything; they may be nil.
	Pool     *ConnectionPool
	Outlier  *OutlierDetection
	Locality *LocalityBalancing
	// Upgrade makes HTTP/1 HTTP/2.
	Upgrade bool
	// AutoMTLS: sidecars speak mutual TLS with those who can.
	AutoMTLS   bool
	DNSRefresh Duration
	// Aliases are further names of the trust domain.
	Aliases []string
	// TLS is of connections that leave the mesh.
	TLS *TLSSettings
	// Stat is the pattern of the names of statistics, empty for none; DomainSuffix is left out of names in it.
	Stat         string
	DomainSuffix string
}

func (c *ClusterSettings) keep(old *ClusterSettings) {
	keep(&c.Connections, old.Connections)
	keep(&c.TLS, old.TLS)
	keep(&c.Locality, old.Locality)
}

// TLSSettings are curves and ciphers; nil for the usual ones.
type TLSSettings struct {
	Curves, Ciphers []string
}

// PeerSettings are what is asked of the certificates of proxies that connect to a sidecar.
type PeerSettings struct {
	// TrustDomains are those whose identities are let in.
	TrustDomains []string
	// TLS13 asks for TLS 1.3 at least.
	TLS13 bool
}

// ServerSettings are the TLS of gateways' servers that say nothing of it themselves.
type ServerSettings struct {
	TLSSettings
	MinVersion TLSVersion
}

// AccessSettings are what AuthorizationPolicies mean by what they name.
type AccessSettings struct {
	// TrustDomains are the names of the mesh's own trust domain: a client's name in one of them stands for that in all.
	TrustDomains []string
	// Providers are the servers that policies of CustomAction may name; nil where there are none.
	Providers []*AuthorizationProvider
}

// Provider returns the server of a name; nil if there is none.
func (s *AccessSettings) Provider(name string) *AuthorizationProvider {
	if s == nil {
		return nil
	}
	for _, p := range s.Providers {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// AsksAt reports whether a host is that of a server which policies may name.
func (s *AccessSettings) AsksAt(host string) bool {
	return slices.ContainsFunc(s.Providers, func(p *AuthorizationProvider) bool { return p.Host == host })
}

// TLSVersion is a version of TLS.
type TLSVersion uint8

// The versions.
const (
	TLSAuto TLSVersion = iota
	TLS10
	TLS11
	TLS12
	TLS13
)
