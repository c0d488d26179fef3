package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
	securityv1beta1 "istio.io/api/security/v1beta1"

	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
	"github.com/pilotd/pilotd/cmd/pilotd/secure"
	"github.com/pilotd/pilotd/identity/authn"
	"github.com/pilotd/pilotd/ingest/kube"
)

// secureOptions are the settings for authentication and for certificates.
type secureOptions struct {
	ca, caDir                           string
	tlsCertFile, tlsKeyFile, caCertFile string
	tlsMinVersion                       string
	tlsCipherSuites                     []string
	certLife, maxCertLife, rootLife     time.Duration
	rootCheck                           time.Duration // interval of checking whether a root is due for renewal
	rootBits                            int
	maxOwnCSRs                          int // for each identity, in a second
	customHosts                         string
	audiences                           []string
	jwtRule                             string
	nodeAgents                          []cluster.Account
	unchecked                           bool
}

// environment reads variables of istiod that mean the same as flags, or that have no flag.
func (o *secureOptions) environment() error {
	o.rootLife, o.rootCheck, o.rootBits = 10*365*24*time.Hour, time.Hour, 2048
	for name, to := range map[string]*time.Duration{"DEFAULT_WORKLOAD_CERT_TTL": &o.certLife,
		"MAX_WORKLOAD_CERT_TTL": &o.maxCertLife, "CITADEL_SELF_SIGNED_CA_CERT_TTL": &o.rootLife,
		"CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL": &o.rootCheck} {
		if v := os.Getenv(name); v != "" {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return fmt.Errorf("environment variable %s=%q: want a duration such as 24h", name, v)
			}
			*to = d
		}
	}
	if v := os.Getenv("CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 2048 || n > 8192 {
			return fmt.Errorf("environment variable CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE=%q: want 2048 to 8192", v)
		}
		o.rootBits = n
	}
	yes := map[string]bool{"ENABLE_CA_SERVER": true, "PILOT_ENABLE_XDS_IDENTITY_CHECK": true}
	for name := range yes {
		if v := os.Getenv(name); v != "" {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return fmt.Errorf("environment variable %s=%q: want true or false", name, v)
			}
			yes[name] = b
		}
	}
	if !yes["ENABLE_CA_SERVER"] {
		o.ca = "external"
	}
	o.unchecked = !yes["PILOT_ENABLE_XDS_IDENTITY_CHECK"]
	o.audiences = strings.Split(fromEnv("TOKEN_AUDIENCES", "istio-ca"), ",")
	o.customHosts, o.jwtRule = os.Getenv("ISTIOD_CUSTOM_HOST"), os.Getenv("JWT_RULE")
	if v := os.Getenv("EXTERNAL_CA"); v != "" && o.ca == "own" {
		return fmt.Errorf("environment variable EXTERNAL_CA=%q: signers of Kubernetes are not served; "+
			"--ca=external leaves certificates to somebody else", v)
	}
	return o.readNodeAgents(os.Getenv("CA_TRUSTED_NODE_ACCOUNTS"))
}

// readNodeAgents parses NAMESPACE/NAME,NAMESPACE/NAME.
func (o *secureOptions) readNodeAgents(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		namespace, name, _ := strings.Cut(one, "/")
		if namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("environment variable CA_TRUSTED_NODE_ACCOUNTS=%q: want NAMESPACE/NAME,NAMESPACE/NAME", text)
		}
		o.nodeAgents = append(o.nodeAgents, cluster.Account{Namespace: namespace, Name: name})
	}
	return nil
}

func (o *secureOptions) check() error {
	switch {
	case o.ca != "own" && o.ca != "external":
		return fmt.Errorf("--ca=%s: want own or external", o.ca)
	case (o.tlsCertFile == "") != (o.tlsKeyFile == ""):
		return fmt.Errorf("--tlsCertFile and --tlsKeyFile: want both or neither")
	case o.certLife <= 0 || o.maxCertLife < o.certLife:
		return fmt.Errorf("--workloadCertTTL=%v: want more than 0 and at most --maxWorkloadCertTTL=%v", o.certLife,
			o.maxCertLife)
	}
	if _, err := o.minVersion(); err != nil {
		return err
	}
	_, err := o.ciphers()
	return err
}

func (o *secureOptions) minVersion() (uint16, error) {
	switch o.tlsMinVersion {
	case "", "TLSv1_2", "TLS_AUTO":
		return tls.VersionTLS12, nil
	case "TLSv1_3":
		return tls.VersionTLS13, nil
	}
	return 0, fmt.Errorf("--tls-min-version=%s: want TLSv1_2 or TLSv1_3", o.tlsMinVersion)
}

func (o *secureOptions) ciphers() (out []uint16, err error) {
	for _, name := range o.tlsCipherSuites {
		id := uint16(0)
		for _, c := range tls.CipherSuites() {
			if c.Name == name {
				id = c.ID
			}
		}
		if id == 0 {
			return nil, fmt.Errorf("--tls-cipher-suites: %s is not known, or not good", name)
		}
		out = append(out, id)
	}
	return out, nil
}

// issuers returns the issuers whose tokens pilotd validates itself. JWT_RULE describes one, in the form of a JWTRule of
// RequestAuthentication.
func (o *secureOptions) issuers() ([]*authn.Issuer, error) {
	if o.jwtRule == "" {
		return nil, nil
	}
	r := &securityv1beta1.JWTRule{}
	if err := protojson.Unmarshal([]byte(o.jwtRule), r); err != nil {
		return nil, fmt.Errorf("environment variable JWT_RULE: %w", err)
	}
	if r.GetIssuer() == "" || len(r.GetAudiences()) == 0 || r.GetJwks() != "" {
		return nil, fmt.Errorf("environment variable JWT_RULE: want an issuer and audiences; keys come from jwksUri or the issuer alone")
	}
	return []*authn.Issuer{authn.NewIssuer(r.GetIssuer(), r.GetJwksUri(), r.GetAudiences(), time.Now)}, nil
}

// hosts returns the DNS names under which clients connect to pilotd.
func (o *options) hosts() (out []string) {
	for name := range strings.SplitSeq(o.customHosts, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	services := []string{"istiod", "istiod-remote", "istio-pilot"}
	if o.revision != "" && o.revision != "default" {
		services = append(services, "istiod-"+o.revision)
	}
	for _, s := range services {
		out = append(out, s+"."+o.namespace+".svc")
	}
	return out
}

// newAPI returns the client of the API server for questions about identities and secrets; nil if there is no API
// server, or no port over which clients could cause such a question.
func newAPI(o *options, log *slog.Logger) (*cluster.API, error) {
	if !o.kubernetes() || o.secureGRPCAddr == "" {
		return nil, nil
	}
	cfg, err := kube.RESTConfig(kubeOptions(o, nil, log, false))
	if err != nil {
		return nil, err
	}
	return cluster.New(cfg)
}

// newSecure returns the part of the server that authenticates clients and issues certificates.
func newSecure(o *options, server *discovery.Server, api *cluster.API, log *slog.Logger) (*secure.Server, error) {
	log = log.With(scopeKey, "security")
	settings := secure.Options{
		TrustDomains: server.TrustDomains, Namespace: o.namespace, ClusterID: o.clusterID, Holder: holder(),
		Revision: o.revision, External: o.ca == "external", CADir: o.caDir, CertFile: o.tlsCertFile, KeyFile: o.tlsKeyFile,
		RootFile: o.caCertFile, Hosts: o.hosts(), Life: o.certLife, MaxLife: o.maxCertLife, RootLife: o.rootLife,
		RootBits: o.rootBits, RenewEvery: o.rootCheck, Signers: half(), Computing: half(), Connections: o.maxConnections,
		Asked:     o.maxOwnCSRs,
		Audiences: o.audiences, Unchecked: o.unchecked, NodeAgents: o.nodeAgents,
		Now: time.Now, Every: secure.Ticker, Log: log, Lead: newFacts(o, server.Reports, api, log),
	}
	var err error
	settings.MinVersion, _ = o.minVersion() // validated before
	settings.Ciphers, _ = o.ciphers()
	if settings.Issuers, err = o.issuers(); err != nil {
		return nil, err
	}
	if o.secureGRPCAddr == "" {
		settings.External = true // no client could ask for certificates
	}
	if api != nil {
		settings.API, settings.Tokens = api, api
	}
	if o.unchecked {
		log.Warn("proxies may claim to be of any namespace and service account", "PILOT_ENABLE_XDS_IDENTITY_CHECK", false)
	}
	s, err := secure.New(settings)
	if err == nil {
		s.Metrics(server.Metrics)
	}
	return s, err
}

// half returns half of the processors: the share for connecting clients, so that connected ones still get theirs.
func half() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// holder returns this replica's name in leader election.
func holder() string {
	return instance() + "_" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// port is a listener of the discovery service.
type port struct {
	listener net.Listener
	server   *grpc.Server
	// missing says what the port waits for before it answers clients; nil for nothing.
	missing func() string
}

func (p port) serve() error { return p.server.Serve(p.listener) }

type ports []port

// waiting returns what the ports wait for, as text.
func (ps ports) waiting() string {
	for _, p := range ps {
		if p.missing != nil && p.missing() != "" {
			return "--secureGRPCAddr: waiting for " + p.missing()
		}
	}
	return ""
}

// listenGRPC opens the ports of the discovery service: plain text, and TLS if there is, or will be, a certificate to
// serve.
func listenGRPC(o *options, server *discovery.Server, s *secure.Server, log *slog.Logger) (out ports, err error) {
	plain, err := listen("--grpcAddr", o.grpcAddr)
	if err != nil {
		return nil, err
	}
	if plain != nil {
		log.Warn("xDS is served in plain text, to clients that prove nothing: whoever reaches the port may read all configuration but secrets",
			"address", o.grpcAddr)
		out = append(out, port{plain, server.Streams.GRPC(nil), nil})
	}
	if o.secureGRPCAddr == "" {
		return out, nil
	}
	if !s.Serves() {
		log.Info("not served: there is neither a serving certificate nor a certificate authority", "flag",
			"--secureGRPCAddr", "address", o.secureGRPCAddr)
		return out, nil
	}
	l, err := listen("--secureGRPCAddr", o.secureGRPCAddr)
	if err != nil {
		return nil, err
	}
	door := s.Listen(l)
	g := server.Streams.GRPC(door.Credentials(credentials.NewTLS(s.TLS())))
	s.Register(g, server.Streams)
	return append(out, port{door, g, s.Waiting}), nil
}
