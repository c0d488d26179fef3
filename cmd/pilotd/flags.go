package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/cmd/program"
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
		Use:     "discovery",
		Short:   "Serve configuration to proxies",
		Long:    discoveryLong,
		Example: discoveryExample,
		Args:    cobra.NoArgs,
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
	return program.Explain(cmd, o.sections()...)
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
