package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/status"
)

// options are the settings of "pilotd discovery".
type options struct {
	configDir, kubeconfig, meshConfig string
	registries                        []string
	namespace, domain, clusterID      string
	watchNamespace, revision          string
	kubeQPS                           float32
	kubeBurst                         int
	kindGrace                         time.Duration
	events                            bool

	grpcAddr, secureGRPCAddr, httpAddr, httpsAddr, monitoringAddr string
	debugAnywhere                                                 bool
	debugTokenFile, debugToken                                    string

	shards                              int
	rebalance                           int
	keepaliveInterval, keepaliveTimeout time.Duration
	keepaliveMaxAge, shutdownDuration   time.Duration
	maxRegexSize, maxRegexSizeUpstream  int
	maxRecvSize, maxStreams             int
	maxConnections                      int // 0: computed from the machine's resources
	maxOwnStreams, maxOwnRequests       int // for each identity
	maxSubscriptions, maxBytesHeld      int
	maxBytesUnderway, maxBytesHeldInAll int
	maxBytesNamed, maxBytesReceived     int // 0: computed from the machine's resources
	stuckAfter                          time.Duration
	debounceAfter, debounceMax          time.Duration
	logLevel                            string
	logJSON                             bool
	droppedLines                        func() int // number of dropped log lines
	ctrlzPort                           int
	networksConfig, profile             string
	clusterAliases                      []string

	secureOptions
	keyOptions
}

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.configDir, "configDir", "", "directory tree of YAML to read objects from, watched for changes")
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig of the API server to read objects from; in a cluster its own when empty")
	f.StringVar(&o.meshConfig, "meshConfig", "./etc/istio/config/mesh",
		"file with the MeshConfig, watched for changes; used when there is no cluster, or when given")
	f.StringSliceVar(&o.registries, "registries", []string{"Kubernetes"},
		"where services come from: Kubernetes, or nothing for --configDir alone")
	f.StringVarP(&o.namespace, "namespace", "n", fromEnv("POD_NAMESPACE", "istio-system"),
		"namespace that pilotd runs in, where the mesh's ConfigMap is read")
	f.StringVarP(&o.watchNamespace, "appNamespace", "a", fromEnv("ISTIO_WATCH_NAMESPACE", ""),
		"the only namespace to read objects from; all when empty")
	f.StringVar(&o.domain, "domain", "cluster.local", "DNS domain of the cluster")
	f.StringVar(&o.clusterID, "clusterID", fromEnv("CLUSTER_ID", "Kubernetes"),
		"name of the cluster that pilotd runs in")
	f.StringVar(&o.revision, "revision", os.Getenv("REVISION"),
		"revision of this control plane; names the mesh's ConfigMap")
	f.Float32Var(&o.kubeQPS, "kubernetesApiQPS", 80, "requests a second to the API server")
	f.IntVar(&o.kubeBurst, "kubernetesApiBurst", 160, "burst of requests to the API server")
	f.DurationVar(&o.kindGrace, "kindGrace", 20*time.Second,
		"how long kinds that pilotd can do without (nodes, namespaces, Istio's) and cannot read keep it from being ready, once it has all others")

	f.BoolVar(&o.events, "events", true,
		"make Events of what pilotd cannot use of objects; conditions in the status of Istio's objects need PILOT_ENABLE_STATUS=true")

	f.StringVar(&o.grpcAddr, "grpcAddr", ":15010", "address for xDS in plain text, where nobody proves who he is; none when empty")
	f.StringVar(&o.secureGRPCAddr, "secureGRPCAddr", ":15012", "address for xDS and certificates over TLS; none when empty, or when there is neither --tlsCertFile nor a certificate authority")
	f.StringVar(&o.httpAddr, "httpAddr", ":8080", "address for /ready and /debug; none when empty")
	f.StringVar(&o.httpsAddr, "httpsAddr", ":15017", "address for the webhooks /inject and /validate, over TLS; needs --registries=Kubernetes; none when empty")
	f.StringVar(&o.monitoringAddr, "monitoringAddr", ":15014",
		"address for /metrics, /ready and /debug; none when empty")
	f.BoolVar(&o.debugAnywhere, "debugAnywhere", false, "answer /debug to every client, without a token")
	f.StringVar(&o.debugTokenFile, "debugTokenFile", "",
		"file with a secret that opens /debug to its bearer from everywhere (or the secret itself in PILOTD_DEBUG_TOKEN); without it /debug answers only to 127.0.0.1 and ::1")

	o.secureOptions.register(f)

	f.IntVar(&o.maxRegexSize, "maxRegexSize", envoytext.IstioRegexSize,
		"largest RE2 program of a regular expression; objects with a larger one are refused. The default is what Istio's bootstrap sets as re2.max_program_size.error_level")
	f.IntVar(&o.maxRegexSizeUpstream, "maxRegexSizeUpstream", envoytext.UpstreamRegexSize,
		"largest RE2 program of a regular expression that proxies without Istio's filters take (upstream Envoys; their runtime key re2.max_program_size.error_level); they do not get a virtual host with a larger one")

	f.IntVar(&o.shards, "shards", runtime.GOMAXPROCS(0), "workers that proxies are spread over")
	f.DurationVar(&o.keepaliveInterval, "keepaliveInterval", 30*time.Second,
		"silence after which a connection is probed")
	f.DurationVar(&o.keepaliveTimeout, "keepaliveTimeout", 10*time.Second, "time for an answer to the probe")
	f.DurationVar(&o.keepaliveMaxAge, "keepaliveMaxServerConnectionAge", 0,
		"age at which a connection is closed gracefully, with jitter; never when 0")
	f.DurationVar(&o.shutdownDuration, "shutdownDuration", 10*time.Second,
		"time over which streams are drained when pilotd ends")
	f.IntVar(&o.rebalance, "rebalance", 2,
		"most proxies a second that are asked to connect again while this replica has far more than its share of all; none when 0")
	f.IntVar(&o.maxRecvSize, "maxRecvSize", 4<<20, "largest request, in bytes (ISTIO_GPRC_MAXRECVMSGSIZE)")
	f.IntVar(&o.maxStreams, "maxStreams", 100000,
		"most streams at once, fewer where memory is short (ISTIO_GPRC_MAXSTREAMS)")
	f.IntVar(&o.maxOwnStreams, "maxStreamsPerIdentity", 0,
		"most streams at once of one service account, or of one address where nobody proves who he is; three quarters of all streams when 0")
	f.IntVar(&o.maxOwnRequests, "maxRequestsPerIdentity", 5000,
		"most xDS requests a second of the same, besides answers to responses: streams that begin, and what they ask for beyond 32 requests; ten seconds' worth at once; no limit when 0")
	f.IntVar(&o.maxSubscriptions, "maxSubscriptions", 200000,
		"most resource names that one stream may subscribe to, over all types")
	f.IntVar(&o.maxBytesHeld, "maxBytesHeld", 512<<20, "most bytes that may wait for one stream")
	f.IntVar(&o.maxBytesUnderway, "maxBytesUnderway", 0,
		"bytes of answers that proxies that connect have not shown to have read, from which on others wait; 0 is a 16th of the memory limit, within what the kernel lets TCP have")
	f.IntVar(&o.maxBytesHeldInAll, "maxBytesHeldInAll", 0,
		"bytes that may wait for all streams before clients that do not read are cut off at once; a 4th of the memory limit when 0")
	f.DurationVar(&o.stuckAfter, "stuckAfter", time.Minute,
		"time after which a client is cut off that does not read, or does not answer while changes wait for that")
	f.StringVar(&o.logLevel, "log_output_level", "default:info",
		"least level that is logged, by scope: default:info,ads:debug")
	f.BoolVar(&o.logJSON, "log_as_json", false, "log as JSON")

	// Accepted because deployments written for istiod set them; without effect here.
	f.IntVar(&o.ctrlzPort, "ctrlz_port", 9876, "accepted, without effect")
	f.StringVar(&o.networksConfig, "networksConfig", "", "accepted, without effect")
	f.StringVar(&o.profile, "profile", "", "accepted, without effect")
	f.StringSliceVar(&o.clusterAliases, "clusterAliases", nil, "accepted, without effect")
}

func fromEnv(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// environment reads the variables that have no flag. A value that does not parse is an error that names the variable.
func (o *options) environment() error {
	o.debugToken = os.Getenv("PILOTD_DEBUG_TOKEN")
	for name, to := range map[string]*time.Duration{"PILOT_DEBOUNCE_AFTER": &o.debounceAfter,
		"PILOT_DEBOUNCE_MAX": &o.debounceMax} {
		v := os.Getenv(name)
		if v == "" {
			continue
		}
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return fmt.Errorf("environment variable %s=%q: want a duration such as 100ms", name, v)
		}
		*to = d
	}
	if err := o.secureOptions.environment(); err != nil {
		return err
	}
	if err := o.keyOptions.environment(); err != nil {
		return err
	}
	if o.debounceAfter > 0 && o.debounceMax == 0 {
		o.debounceMax = 10 * time.Second
	}
	for name, to := range map[string]*int{"ISTIO_GPRC_MAXRECVMSGSIZE": &o.maxRecvSize,
		"ISTIO_GPRC_MAXSTREAMS": &o.maxStreams} {
		v := os.Getenv(name)
		if v == "" {
			continue
		}
		if n, err := fmt.Sscanf(v, "%d", to); n != 1 || err != nil || *to <= 0 {
			return fmt.Errorf("environment variable %s=%q: want a number above 0", name, v)
		}
	}
	return nil
}

// ignored returns those variables of istiod that have no effect here, and what to use instead.
func ignored() map[string]string {
	return map[string]string{
		"PILOT_MAX_REQUESTS_PER_SECOND":      "proxies that connect are not refused at a rate; they wait their turn, by need and cost: see --maxBytesUnderway",
		"PILOT_JWT_ENABLE_REMOTE_JWKS":       "proxies do not fetch keys of tokens' issuers; pilotd does",
		"JWKS_RESOLVER_INSECURE_SKIP_VERIFY": "servers of keys must be trusted; more roots are read from " + moreRoots,
		"PILOT_PUSH_THROTTLE":                "pushes to proxies wait for none of each other",
		"TRUSTED_GATEWAY_CIDR":               "nobody vouches for others here: x-forwarded-client-cert is not read, and callers show a certificate or a token of their own",
		"XDS_AUTH":                           "whoever comes to --secureGRPCAddr must prove who he is; --grpcAddr asks nobody",
		"XDS_AUTH_PLAINTEXT":                 "nobody proves who he is at --grpcAddr",
		"CERT_SIGNER_DOMAIN":                 "signers of Kubernetes are not served",
		"K8S_SIGNER":                         "signers of Kubernetes are not served",
		"CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE": "a self-signed root is renewed when a fifth of its life is left",
		"PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS":          "what policies of several providers match is denied",
	}
}

// kubernetes reports whether objects are read from an API server.
func (o *options) kubernetes() bool {
	return slices.ContainsFunc(o.registries, func(r string) bool { return strings.EqualFold(r, "Kubernetes") })
}

// debugAccess returns who may read the debug pages.
func (o *options) debugAccess() status.Access {
	return status.Access{Token: o.debugToken, TokenFile: o.debugTokenFile, Anywhere: o.debugAnywhere}
}

func (o *options) check() error {
	for _, r := range o.registries {
		if r != "" && !strings.EqualFold(r, "Kubernetes") {
			return fmt.Errorf("--registries=%s: want Kubernetes, or nothing", r)
		}
	}
	if !o.kubernetes() && o.configDir == "" {
		return fmt.Errorf("nothing to read objects from: want --configDir, or --registries=Kubernetes")
	}
	if o.shards < 1 {
		return fmt.Errorf("--shards=%d: want at least 1", o.shards)
	}
	for flag, n := range map[string]int{"rebalance": o.rebalance, "maxStreamsPerIdentity": o.maxOwnStreams,
		"maxRequestsPerIdentity": o.maxOwnRequests, "maxCSRsPerIdentity": o.maxOwnCSRs} {
		if n < 0 {
			return fmt.Errorf("--%s=%d: want at least 0", flag, n)
		}
	}
	return o.secureOptions.check()
}

func discoveryCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "discovery",
		Short: "Serve configuration to proxies",
		Args:  cobra.NoArgs,
		// Deployments pass flags of istiod that are unknown here, and pilotd must start nevertheless.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.environment(); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			log, queue, err := newLog(cmd.ErrOrStderr(), o.logLevel, o.logJSON)
			if err != nil {
				return err
			}
			defer queue.close(flushTime)
			o.droppedLines = queue.Dropped
			routeOtherLogs(log)
			for name, instead := range ignored() {
				if os.Getenv(name) != "" {
					log.Warn("environment variable has no effect: "+instead, "variable", name)
				}
			}
			for _, f := range unknownFlags(cmd.Flags(), os.Args[1:]) {
				log.Warn("flag is not known here and has no effect", "flag", f)
			}
			return serve(cmd.Context(), &o, log, cmd.Flags().Changed("meshConfig"))
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// unknownFlags returns the names in args that f does not define.
func unknownFlags(f *pflag.FlagSet, args []string) (out []string) {
	for _, a := range args {
		name, long := strings.CutPrefix(a, "--")
		name, _, _ = strings.Cut(name, "=")
		if a == "--" {
			break
		}
		if long && name != "help" && f.Lookup(name) == nil {
			out = append(out, "--"+name)
		}
	}
	return out
}
