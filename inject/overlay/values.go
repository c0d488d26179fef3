package overlay

import (
	_ "embed" // of the default values
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Values is what the built-in templates read of the chart's values. The names are those of istiod's chart.
type Values struct {
	Global   GlobalValues  `json:"global"`
	Gateways GatewayValues `json:"gateways"`
	Pilot    PilotValues   `json:"pilot"`
	Revision string        `json:"revision"`
	Webhook  WebhookValues `json:"sidecarInjectorWebhook"`
}

// GlobalValues is the part that charts share.
type GlobalValues struct {
	CAAddress        string             `json:"caAddress"`
	CAName           string             `json:"caName"`
	Hub              string             `json:"hub"`
	Tag              Scalar             `json:"tag"`
	ImagePullPolicy  corev1.PullPolicy  `json:"imagePullPolicy"`
	ImagePullSecrets []string           `json:"imagePullSecrets"`
	IstioNamespace   string             `json:"istioNamespace"`
	LogAsJSON        bool               `json:"logAsJson"`
	Logging          LoggingValues      `json:"logging"`
	MeshID           string             `json:"meshID"`
	MountMtlsCerts   bool               `json:"mountMtlsCerts"`
	MultiCluster     MultiClusterValues `json:"multiCluster"`
	NativeNftables   bool               `json:"nativeNftables"`
	Network          string             `json:"network"`
	PilotCertSource  string             `json:"pilotCertProvider"`
	Platform         string             `json:"platform"`
	Proxy            ProxyValues        `json:"proxy"`
	ProxyInit        ProxyInitValues    `json:"proxy_init"`
	SDS              SDSValues          `json:"sds"`
	STS              STSValues          `json:"sts"`
	TrustDomain      string             `json:"trustDomain"`
}

// LoggingValues says what agents log.
type LoggingValues struct {
	Level string `json:"level"`
}

// MultiClusterValues names the cluster.
type MultiClusterValues struct {
	ClusterName string `json:"clusterName"`
}

// SDSValues says for whom the pod's token is made.
type SDSValues struct {
	Token struct {
		Audience string `json:"aud"`
	} `json:"token"`
}

// STSValues has the port of the agent's token service.
type STSValues struct {
	ServicePort Scalar `json:"servicePort"`
}

// ProxyInitValues is about the init container that captures traffic.
type ProxyInitValues struct {
	ForceApplyIptables bool   `json:"forceApplyIptables"`
	Image              string `json:"image"`
}

// ProxyValues is about the proxy's container.
type ProxyValues struct {
	CapNetBindService              Scalar                      `json:"capNetBindService"`
	ClusterDomain                  string                      `json:"clusterDomain"`
	ComponentLogLevel              string                      `json:"componentLogLevel"`
	LogLevel                       string                      `json:"logLevel"`
	ExcludeIPRanges                string                      `json:"excludeIPRanges"`
	ExcludeInboundPorts            Scalar                      `json:"excludeInboundPorts"`
	ExcludeOutboundPorts           Scalar                      `json:"excludeOutboundPorts"`
	IncludeIPRanges                string                      `json:"includeIPRanges"`
	IncludeInboundPorts            Scalar                      `json:"includeInboundPorts"`
	IncludeOutboundPorts           Scalar                      `json:"includeOutboundPorts"`
	HoldApplicationUntilProxyStart bool                        `json:"holdApplicationUntilProxyStarts"`
	Image                          string                      `json:"image"`
	Lifecycle                      *corev1.Lifecycle           `json:"lifecycle"`
	OutlierLogPath                 string                      `json:"outlierLogPath"`
	Privileged                     bool                        `json:"privileged"`
	ReadinessFailureThreshold      int32                       `json:"readinessFailureThreshold"`
	ReadinessInitialDelaySeconds   int32                       `json:"readinessInitialDelaySeconds"`
	ReadinessPeriodSeconds         int32                       `json:"readinessPeriodSeconds"`
	Resources                      corev1.ResourceRequirements `json:"resources"`
	SeccompProfile                 corev1.SeccompProfile       `json:"seccompProfile"`
	StartupProbe                   StartupProbeValues          `json:"startupProbe"`
	StatusPort                     Scalar                      `json:"statusPort"`
	Tracer                         string                      `json:"tracer"`
}

// StartupProbeValues is about the proxy's startup probe.
type StartupProbeValues struct {
	Enabled          bool  `json:"enabled"`
	FailureThreshold int32 `json:"failureThreshold"`
}

// GatewayValues is about gateways that are injected.
type GatewayValues struct {
	SeccompProfile  corev1.SeccompProfile      `json:"seccompProfile"`
	SecurityContext *corev1.PodSecurityContext `json:"securityContext"`
}

// PilotValues is about the control plane and the node agent.
type PilotValues struct {
	CNI struct {
		Enabled  bool   `json:"enabled"`
		Provider string `json:"provider"`
	} `json:"cni"`
	Env map[string]Scalar `json:"env"`
}

// WebhookValues is about the injector itself.
type WebhookValues struct {
	RewriteAppHTTPProbe bool `json:"rewriteAppHTTPProbe"`
}

// Scalar is a text, a number or a boolean, as its text: charts take each for the other.
type Scalar string

// UnmarshalJSON takes any scalar; null is an empty text.
func (s *Scalar) UnmarshalJSON(b []byte) error {
	text := strings.TrimSpace(string(b))
	switch {
	case text == "null":
		*s = ""
		return nil
	case strings.HasPrefix(text, `"`):
		return json.Unmarshal(b, (*string)(s))
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return fmt.Errorf("expected a text or a number, got %.40s", text)
	}
	*s = Scalar(text)
	return nil
}

// defaults are the values where an installation says nothing.
//
//go:embed defaults.yaml
var defaults []byte

// ReadValues reads the chart's values, JSON or YAML, over the defaults: as a map for templates, and as what the
// built-in templates read of it. Keys that only other parts of a chart read are left alone.
func ReadValues(text string) (map[string]any, *Values, error) {
	all, given, typed := map[string]any{}, map[string]any{}, &Values{}
	if err := yaml.Unmarshal(defaults, &all); err != nil {
		return nil, nil, fmt.Errorf("default values: %w", err)
	}
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		return nil, nil, fmt.Errorf("values: expected an object as JSON or YAML: %w", err)
	}
	layValues(all, given)
	asJSON, err := json.Marshal(all)
	if err != nil {
		return nil, nil, fmt.Errorf("values: %w", err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, typed); err != nil {
		return nil, nil, fmt.Errorf("values: %w", err)
	}
	return all, typed, nil
}

// layValues lays values over others as Helm does: objects key by key, all else as a whole. Resources are a whole, for
// an installation that wants none says so by an empty object.
func layValues(onto, over map[string]any) {
	for k, v := range over {
		base, ok1 := onto[k].(map[string]any)
		inner, ok2 := v.(map[string]any)
		if ok1 && ok2 && k != "resources" {
			layValues(base, inner)
		} else {
			onto[k] = v
		}
	}
}
