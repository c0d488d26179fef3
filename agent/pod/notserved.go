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
	return map[string]string{
		"COMPLIANCE_POLICY":       "the agent's own connections are TLS 1.2 or 1.3 as Go makes them",
		"FILE_MOUNTED_CERTS":      "files in etc/certs or var/run/secrets/workload-spiffe-credentials are used where they are",
		"ISTIO_BOOTSTRAP":         "the bootstrap is not made from a template; ISTIO_BOOTSTRAP_OVERRIDE is laid on it",
		"ISTIO_META_ENABLE_HBONE": "the bootstrap has no listener for HBONE",
		"PROXY_CONFIG_XDS_AGENT":  "roots come with certificates alone",
		"STS_PORT":                "there is no token exchange service",
	}
}

// notServed returns a warning for each setting that has no effect, with the reason.
func (p *Pod) notServed() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(ignored())) {
		if v := p.Env.Text(name, ""); v != "" && v != "false" && v != "0" {
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
