package main

import (
	"os"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/cmd/program"
	"github.com/pilotd/pilotd/envoytext"
)

const discoveryLong = `Serve configuration to the proxies of a mesh over xDS, sign their certificates, and inject them into pods.

Flags and environment variables are those of istiod's "pilot-discovery discovery" where they have a meaning here.
Flags that pilotd does not know are accepted with a warning. In a flag's text, a name in capitals is the environment
variable for the same setting.`

const discoveryExample = `  pilotd discovery --kubeconfig ~/.kube/config
  pilotd discovery --registries= --configDir ./mesh --meshConfig ./mesh.yaml    # no cluster, files only`

// sections returns all flags and environment variables of "pilotd discovery", in the order of its help.
func (o *options) sections() []program.Section {
	return []program.Section{
		program.Flags("Where objects come from", o.registerSources),
		program.Flags("Addresses to serve on (an empty one serves nothing there)", o.registerAddresses),
		program.Flags("Certificates", o.registerCertificates),
		program.Flags("What people are told", o.registerReports),
		program.Flags("Connections", o.registerConnections),
		program.Flags("Limits on what clients and objects may cost", o.registerLimits),
		program.Flags("Flags of istiod that are accepted and have no effect", o.registerIgnored),
		{Title: "Environment variables without a flag", Names: variables()},
	}
}

func (o *options) registerSources(f *pflag.FlagSet) {
	f.StringSliceVar(&o.registries, "registries", []string{"Kubernetes"},
		"read objects from an API server (Kubernetes), or from none (empty)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"`file` with the address of the API server; empty uses $KUBECONFIG, ~/.kube/config or the pod's service account")
	f.StringVar(&o.configDir, "configDir", "", "`directory` of YAML files to read objects from; changes are followed")
	f.StringVar(&o.meshConfig, "meshConfig", "./etc/istio/config/mesh",
		"`file` with the mesh configuration; changes are followed. With an API server it is used only if this flag is given")
	f.StringVarP(&o.namespace, "namespace", "n", fromEnv("POD_NAMESPACE", "istio-system"),
		"pilotd's own namespace, with the ConfigMap of the mesh configuration (POD_NAMESPACE)")
	f.StringVarP(&o.watchNamespace, "appNamespace", "a", fromEnv("ISTIO_WATCH_NAMESPACE", ""),
		"read objects of this namespace only; empty reads all (ISTIO_WATCH_NAMESPACE)")
	f.StringVar(&o.domain, "domain", "cluster.local", "DNS domain of the cluster")
	f.StringVar(&o.clusterID, "clusterID", fromEnv("CLUSTER_ID", "Kubernetes"),
		"name of pilotd's own cluster (CLUSTER_ID)")
	f.StringVar(&o.revision, "revision", os.Getenv("REVISION"),
		"revision of this control plane; part of the names of its ConfigMaps and its Lease (REVISION)")
	f.Float32Var(&o.kubeQPS, "kubernetesApiQPS", 80, "requests to the API server in a second, on average")
	f.IntVar(&o.kubeBurst, "kubernetesApiBurst", 160, "requests to the API server at once")
	f.DurationVar(&o.kindGrace, "kindGrace", 20*time.Second,
		"how long to wait, once everything else is read, for optional kinds (nodes, namespaces, Istio's) that cannot be read")
}

func (o *options) registerAddresses(f *pflag.FlagSet) {
	f.StringVar(&o.grpcAddr, "grpcAddr", ":15010", "xDS in plain text; clients are not authenticated")
	f.StringVar(&o.secureGRPCAddr, "secureGRPCAddr", ":15012",
		"xDS and certificates over TLS; needs an authority (--ca) or --tlsCertFile")
	f.StringVar(&o.httpAddr, "httpAddr", ":8080", "/ready and /debug")
	f.StringVar(&o.monitoringAddr, "monitoringAddr", ":15014", "/metrics, /ready and /debug")
	f.StringVar(&o.httpsAddr, "httpsAddr", ":15017", "webhooks /inject and /validate over TLS; needs --registries=Kubernetes")
	f.StringVar(&o.debugTokenFile, "debugTokenFile", "",
		"`file` with a secret; clients that send it as a bearer token may read /debug from anywhere, others only from 127.0.0.1 and ::1")
	f.BoolVar(&o.debugAnywhere, "debugAnywhere", false, "let every client read /debug, without a token")
}

func (o *options) registerCertificates(f *pflag.FlagSet) {
	f.StringVar(&o.ca, "ca", "own",
		`who signs certificates of workloads. "own": pilotd, with the authority in --caDir, Secret cacerts or Secret istio-ca-secret, which it creates if there is none. "external": another system (ENABLE_CA_SERVER=false)`)
	f.StringVar(&o.caDir, "caDir", fromEnv("ROOT_CA_DIR", "./etc/cacerts"),
		"`directory` with an authority: ca-cert.pem, ca-key.pem, root-cert.pem and cert-chain.pem, or tls.crt, tls.key and ca.crt. It is used if it has a key when pilotd starts; changes are followed (ROOT_CA_DIR)")
	f.StringVar(&o.tlsCertFile, "tlsCertFile", "",
		"`file` with the certificate of --secureGRPCAddr; changes are followed. Empty: the authority signs one")
	f.StringVar(&o.tlsKeyFile, "tlsKeyFile", "", "`file` with the key of --tlsCertFile")
	f.StringVar(&o.caCertFile, "caCertFile", "",
		"`file` with more root certificates for verifying clients, in addition to the authority's")
	f.StringVar(&o.tlsMinVersion, "tls-min-version", "", "lowest TLS version: TLSv1_2 (also if empty) or TLSv1_3")
	f.StringSliceVar(&o.tlsCipherSuites, "tls-cipher-suites", nil,
		"TLS 1.2 cipher suites, such as TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256; empty: all secure ones")
	f.DurationVar(&o.certLife, "workloadCertTTL", 24*time.Hour,
		"lifetime of a workload's certificate if it does not ask for one (DEFAULT_WORKLOAD_CERT_TTL)")
	f.DurationVar(&o.maxCertLife, "maxWorkloadCertTTL", 90*24*time.Hour,
		"longest lifetime that a workload may ask for (MAX_WORKLOAD_CERT_TTL)")
}

func (o *options) registerReports(f *pflag.FlagSet) {
	f.BoolVar(&o.events, "events", true,
		"create a Kubernetes Event for each object that pilotd cannot fully use; PILOT_ENABLE_STATUS=true also writes conditions into the status of Istio's objects")
	f.StringVar(&o.logLevel, "log_output_level", "default:info",
		"lowest logged `level` (debug, info, warn, error, none) for each scope, such as default:info,ads:debug")
	f.BoolVar(&o.logJSON, "log_as_json", false, "log as JSON")
}

func (o *options) registerConnections(f *pflag.FlagSet) {
	f.IntVar(&o.shards, "shards", runtime.GOMAXPROCS(0), "number of workers that share the proxies")
	f.DurationVar(&o.keepaliveInterval, "keepaliveInterval", 30*time.Second,
		"ping a connection after it has been silent for this long")
	f.DurationVar(&o.keepaliveTimeout, "keepaliveTimeout", 10*time.Second, "close it if the ping is not answered in this time")
	f.DurationVar(&o.keepaliveMaxAge, "keepaliveMaxServerConnectionAge", 0,
		"close connections gracefully at about this age; 0: never")
	f.DurationVar(&o.shutdownDuration, "shutdownDuration", 10*time.Second,
		"close the streams over this time when pilotd ends")
	f.DurationVar(&o.stuckAfter, "stuckAfter", time.Minute,
		"disconnect a client that for this long does not read, or does not answer while changes wait for the answer")
	f.IntVar(&o.rebalance, "rebalance", 2,
		"proxies in a second that are asked to reconnect while this replica has far more than its share of all; 0: none")
}

func (o *options) registerLimits(f *pflag.FlagSet) {
	f.IntVar(&o.maxStreams, "maxStreams", 100000,
		"streams at once; fewer if memory does not suffice (ISTIO_GPRC_MAXSTREAMS)")
	f.IntVar(&o.maxOwnStreams, "maxStreamsPerIdentity", 0,
		"streams at once of one service account, or of one address if clients are not authenticated; 0: three quarters of all streams")
	f.IntVar(&o.maxOwnRequests, "maxRequestsPerIdentity", 5000,
		"new streams, and xDS requests beyond the first 32 of a stream, of one such identity in a second; ACKs do not count, and ten times as many are allowed at once; 0: no limit")
	f.IntVar(&o.maxOwnCSRs, "maxCSRsPerIdentity", 500,
		"certificates for one service account in a second; ten times as many are allowed at once; 0: no limit")
	f.IntVar(&o.maxSubscriptions, "maxSubscriptions", 200000, "resource names that one stream may subscribe to, all types together")
	f.IntVar(&o.maxRecvSize, "maxRecvSize", 4<<20, "bytes of the largest request (ISTIO_GPRC_MAXRECVMSGSIZE)")
	f.IntVar(&o.maxBytesHeld, "maxBytesHeld", 512<<20, "unwritten bytes of one stream at which its client is disconnected")
	f.IntVar(&o.maxBytesHeldInAll, "maxBytesHeldInAll", 0,
		"unwritten bytes of all streams at which clients that do not read are disconnected at once; 0: a quarter of the memory limit")
	f.IntVar(&o.maxBytesUnderway, "maxBytesUnderway", 0,
		"unread bytes of answers to connecting proxies at which further proxies wait; 0: a 16th of the memory limit, or less if the kernel's memory for TCP is small")
	f.IntVar(&o.maxRegexSize, "maxRegexSize", envoytext.IstioRegexSize,
		"largest RE2 program of a regular expression; an object with a larger one is refused. The default is the runtime key re2.max_program_size.error_level in Istio's bootstrap")
	f.IntVar(&o.maxRegexSizeUpstream, "maxRegexSizeUpstream", envoytext.UpstreamRegexSize,
		"the same limit for proxies without Istio's filters (upstream Envoy); they do not get a virtual host with a larger expression")
}

func (o *options) registerIgnored(f *pflag.FlagSet) {
	f.IntVar(&o.ctrlzPort, "ctrlz_port", 9876, "no effect")
	f.StringVar(&o.networksConfig, "networksConfig", "", "no effect")
	f.StringVar(&o.profile, "profile", "", "no effect")
	f.StringSliceVar(&o.clusterAliases, "clusterAliases", nil, "no effect")
}

// variables returns the environment variables that have no flag, and what they mean.
func variables() [][2]string {
	return [][2]string{
		{"PILOT_DEBOUNCE_AFTER", "wait for this long after a configuration change for more of them, such as 100ms; not set: do not wait"},
		{"PILOT_DEBOUNCE_MAX", "but at most for this long (10s)"},
		{"PILOTD_DEBUG_TOKEN", "the secret of --debugTokenFile itself"},
		{"PILOT_ENABLE_STATUS", "true: write conditions into the status of Istio's objects; PILOT_ENABLE_ANALYSIS means the same"},
		{"PILOT_ENABLE_XDS_IDENTITY_CHECK", "false: let proxies claim a namespace and a service account without proof"},
		{"PILOT_JWT_PUB_KEY_REFRESH_INTERVAL", "how often to fetch the keys of token issuers (20m)"},
		{"BLOCKED_CIDRS_IN_JWKS_URIS", "address ranges from which no keys are fetched, such as 10.0.0.0/8,fd00::/8"},
		{"TOKEN_AUDIENCES", "accepted audiences of service account tokens, separated by commas (istio-ca)"},
		{"JWT_RULE", "an issuer whose tokens pilotd validates itself, as the JSON of a JWTRule"},
		{"CA_TRUSTED_NODE_ACCOUNTS", "service accounts, as NAMESPACE/NAME,…, of agents that may ask for certificates of the pods on their own node"},
		{"ISTIOD_CUSTOM_HOST", "more DNS names for the serving certificate, separated by commas"},
		{"CITADEL_SELF_SIGNED_CA_CERT_TTL", "lifetime of a root that pilotd makes (87600h)"},
		{"CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE", "bits of its key, 2048 to 8192 (2048)"},
		{"CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL", "how often to check whether it is due for renewal (1h)"},
		{"EXTERNAL_CA", "refused, because Kubernetes signers are not supported; see --ca=external"},
		{"ENABLE_NATIVE_SIDECARS", "true, false or auto: inject proxies as native sidecars; auto, also if not set: where a pod's node supports them"},
		{"COMPLIANCE_POLICY", "passed on to injected proxies"},
		{"POD_NAME", "name of this replica (the host name)"},
		{"GOMEMLIMIT", "memory limit, such as 2GiB, where the container has none"},
	}
}
