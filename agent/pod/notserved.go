package pod

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// ignored maps variables of Istio's agent that have no effect here to the reason.
func ignored() map[string]string {
	const noModules = "the agent fetches no modules of Wasm"
	const noToken = "what proves the pod's identity is the token in var/run/secrets/tokens, or a certificate in PROV_CERT"
	const noCloud = "the node has no metadata of a cloud"
	return map[string]string{
		"CLOUD_PLATFORM":                     noCloud,
		"COMPLIANCE_POLICY":                  "the agent's own connections are TLS 1.2 or 1.3 as Go makes them",
		"CREDENTIAL_FETCHER_TYPE":            noToken,
		"CREDENTIAL_IDENTITY_PROVIDER":       noToken,
		"ENABLE_PROBE_KEEPALIVE_CONNECTIONS": "each probe has a connection of its own",
		"ENVOY_SKIP_DEPRECATED_LOGS":         "Envoy's log is passed on as it is",
		"FILE_DEBOUNCE_DURATION":             "files are looked at each second",
		"FILE_MOUNTED_CERTS":                 "files in etc/certs or var/run/secrets/workload-spiffe-credentials are used where they are",
		"GCP_METADATA":                       noCloud,
		"ISTIO_BOOTSTRAP":                    "the bootstrap is not made from a template; ISTIO_BOOTSTRAP_OVERRIDE is laid on it",
		"ISTIO_GPRC_MAXRECVMSGSIZE":          "answers of the control plane may have any size",
		"ISTIO_META_ENABLE_HBONE":            "the bootstrap has no listener for HBONE",
		"JWT_POLICY":                         noToken,
		"PEER_METADATA_DISCOVERY":            "the bootstrap has no such extension",
		"PROXY_CONFIG_XDS_AGENT":             "roots come with certificates alone",
		"STS_PORT":                           "there is no token exchange service",
		"WASM_HTTP_REQUEST_MAX_RETRIES":      noModules,
		"WASM_HTTP_REQUEST_TIMEOUT":          noModules,
		"WASM_INSECURE_REGISTRIES":           noModules,
		"WASM_MODULE_EXPIRY":                 noModules,
		"WASM_PURGE_INTERVAL":                noModules,
		"XDS_AUTH_PROVIDER":                  noToken,
	}
}

// usual reports whether a variable of ignored asks for what the agent does anyway.
func usual(name, value string) bool {
	switch name {
	case "CREDENTIAL_FETCHER_TYPE":
		return value == "JWT"
	case "ENVOY_SKIP_DEPRECATED_LOGS":
		return value == "true"
	case "JWT_POLICY":
		return value == "third-party-jwt"
	}
	return value == "" || value == "false" || value == "0"
}

// notServed returns a warning for each setting that has no effect, with the reason.
func (p *Pod) notServed() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(ignored())) {
		if p.Env.Has(name) && !usual(name, p.Env.Text(name, "")) {
			out = append(out, fmt.Sprintf("environment variable %s has no effect: %s", name, ignored()[name]))
		}
	}
	c := p.Config
	for name, is := range map[string]bool{
		"envoyAccessLogService":      c.EnvoyAccessLogService != nil,
		"envoyMetricsService":        c.EnvoyMetricsService != nil,
		"privateKeyProvider":         c.PrivateKeyProvider != nil,
		"caCertificatesPem":          len(c.CaCertificatesPem) > 0,
		"customConfigFile":           c.CustomConfigFile != "",
		"proxyBootstrapTemplatePath": c.ProxyBootstrapTemplatePath != "",
		"statsdUdpAddress":           c.StatsdUdpAddress != "",
		"tracing.lightstep":          c.GetTracing().GetLightstep() != nil,
		"tracing.stackdriver":        c.GetTracing().GetStackdriver() != nil,
		"tracing.openCensusAgent":    c.GetTracing().GetOpenCensusAgent() != nil,
		"tracing.tlsSettings":        c.GetTracing().GetTlsSettings() != nil,
	} {
		if is {
			out = append(out, "ProxyConfig: "+name+" has no effect")
		}
	}
	slices.Sort(out)
	return out
}
