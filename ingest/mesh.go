package ingest

import (
	"fmt"
	corev1 "k8s.io/api/core/v1"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/proxyconfig"
	"github.com/pilotd/pilotd/snapshot/value"
)

// meshKind describes the mesh configuration: a YAML text, stored in a ConfigMap under the key meshKey.
func meshKind() Kind {
	k := builtin[corev1.ConfigMap, corev1.ConfigMapList](Kind{Name: value.KindMeshConfig, Resource: "ConfigMap",
		Plural: "configmaps"})
	k.check = func(object any, _ limits) *problem {
		text, ok := object.(string)
		if !ok {
			return &problem{"", fmt.Sprintf("expected the text of a MeshConfig, got %T", object)}
		}
		_, p := parseMesh(text)
		return p
	}
	k.message = func(object any) (proto.Message, string) {
		text, _ := object.(string)
		if read, _, p := readMesh(text); p == nil {
			return read, ""
		}
		return nil, ""
	}
	k.put = func(j *joiner, _ value.ObjectKey, object any) { j.putMesh(object) }
	return k
}

// DefaultMesh returns the mesh configuration that holds if users give none.
func DefaultMesh() *meshconfig.MeshConfig {
	return &meshconfig.MeshConfig{
		AccessLogEncoding:              meshconfig.MeshConfig_TEXT,
		ConnectTimeout:                 durationpb.New(10 * time.Second),
		DefaultConfig:                  proxyconfig.Default(),
		DefaultDestinationRuleExportTo: []string{"*"},
		DefaultProviders:               &meshconfig.MeshConfig_DefaultProviders{},
		DefaultServiceExportTo:         []string{"*"},
		DefaultVirtualServiceExportTo:  []string{"*"},
		DnsRefreshRate:                 durationpb.New(60 * time.Second),
		EnableAutoMtls:                 wrapperspb.Bool(true),
		EnablePrometheusMerge:          wrapperspb.Bool(true),
		EnableTracing:                  true,
		ExtensionProviders: []*meshconfig.MeshConfig_ExtensionProvider{
			{Name: "prometheus", Provider: &meshconfig.MeshConfig_ExtensionProvider_Prometheus{
				Prometheus: &meshconfig.MeshConfig_ExtensionProvider_PrometheusMetricsProvider{}}},
			{Name: "stackdriver", Provider: &meshconfig.MeshConfig_ExtensionProvider_Stackdriver{
				Stackdriver: &meshconfig.MeshConfig_ExtensionProvider_StackdriverProvider{}}},
			{Name: "envoy", Provider: &meshconfig.MeshConfig_ExtensionProvider_EnvoyFileAccessLog{
				EnvoyFileAccessLog: &meshconfig.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{Path: "/dev/stdout"}}},
		},
		InboundTrafficPolicy: &meshconfig.MeshConfig_InboundTrafficPolicy{
			Mode: meshconfig.MeshConfig_InboundTrafficPolicy_PASSTHROUGH},
		IngressClass:          "istio",
		IngressControllerMode: meshconfig.MeshConfig_STRICT,
		IngressService:        "istio-ingressgateway",
		LocalityLbSetting:     &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(true)},
		OutboundTrafficPolicy: &meshconfig.MeshConfig_OutboundTrafficPolicy{
			Mode: meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY},
		ProtocolDetectionTimeout: durationpb.New(0),
		ProxyInboundListenPort:   15006,
		ProxyListenPort:          15001,
		RootNamespace:            "istio-system",
		TrustDomain:              "cluster.local",
	}
}

func (j *joiner) putMesh(object any) {
	text, _ := object.(string)
	next := configOf(text)
	if proto.Equal(next, j.config) {
		return
	}
	j.setMesh(next)
	j.refresh()
}

// setMesh applies a mesh configuration. If only settings changed that nothing in pilotd reads, the Mesh value stays the
// same.
func (j *joiner) setMesh(config *meshconfig.MeshConfig) {
	j.config = config
	next := istio.Mesh(config, j.domain, j.cluster)
	if j.mesh != nil {
		if next.Keep(j.mesh); *next == *j.mesh {
			return
		}
	}
	j.mesh, j.marks.mesh = next, true
}

// configOf returns the mesh configuration that an admitted text makes, laid over the defaults.
func configOf(text string) *meshconfig.MeshConfig {
	config, p := parseMesh(text)
	if p != nil {
		return DefaultMesh()
	}
	return config
}

// ParseMesh reads a mesh configuration from YAML over the defaults, for callers without a Store.
func ParseMesh(text string) (*meshconfig.MeshConfig, error) {
	config, p := parseMesh(text)
	if p == nil {
		return config, nil
	}
	if p.field == "" {
		return nil, fmt.Errorf("mesh configuration: %s", p.reason)
	}
	return nil, fmt.Errorf("mesh configuration: %s: %s", p.field, p.reason)
}

// parseMesh lays the YAML text over the defaults: fields in the text replace the defaults, messages are merged field by
// field, and extension providers by their names.
func parseMesh(text string) (*meshconfig.MeshConfig, *problem) {
	read, given, p := readMesh(text)
	if p != nil {
		return nil, p
	}
	out := DefaultMesh()
	providers := out.ExtensionProviders
	overlay(out.ProtoReflect(), read.ProtoReflect(), given)
	out.ExtensionProviders = mergeProviders(providers, read.ExtensionProviders)
	return out, checkMesh(out)
}

// readMesh parses the YAML text alone. given has the fields that the text sets, by name.
func readMesh(text string) (read *meshconfig.MeshConfig, given map[string]any, p *problem) {
	given = map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		return nil, nil, &problem{"", "expected a MeshConfig as YAML: " + oneLine(err)}
	}
	if p := misfit((*meshconfig.MeshConfig)(nil).ProtoReflect().Descriptor(), given, ""); p != nil {
		return nil, nil, p
	}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, nil, &problem{"", "expected a MeshConfig as YAML: " + oneLine(err)}
	}
	read = &meshconfig.MeshConfig{}
	if len(given) > 0 {
		if err := protojson.Unmarshal(asJSON, read); err != nil {
			return nil, nil, &problem{"", "expected a MeshConfig: " + oneLine(err)}
		}
	}
	return read, given, nil
}

func mergeProviders(base, over []*meshconfig.MeshConfig_ExtensionProvider) []*meshconfig.MeshConfig_ExtensionProvider {
	out := slices.Clone(base)
	for _, p := range over {
		i := slices.IndexFunc(out,
			func(q *meshconfig.MeshConfig_ExtensionProvider) bool { return q.GetName() == p.GetName() })
		if i < 0 {
			out = append(out, p)
		} else {
			out[i] = p
		}
	}
	return out
}

// overlay copies those fields of src to dst that given names.
func overlay(dst, src protoreflect.Message, given map[string]any) {
	for name, raw := range given {
		field := fieldNamed(dst.Descriptor(), name)
		inner, isObject := raw.(map[string]any)
		switch {
		case !src.Has(field):
			dst.Clear(field)
		case isObject && isPlainMessage(field) && dst.Has(field):
			overlay(dst.Mutable(field).Message(), src.Get(field).Message(), inner)
		default:
			dst.Set(field, src.Get(field))
		}
	}
}

// isPlainMessage reports whether a field is a message whose JSON form is an object of its fields.
func isPlainMessage(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.MessageKind && !f.IsList() && !f.IsMap() &&
		f.Message().ParentFile().Package() != "google.protobuf"
}

func fieldNamed(m protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := m.Fields().ByJSONName(name); f != nil {
		return f
	}
	return m.Fields().ByTextName(name)
}

// misfit returns the first entry of given, in the order of names, that is not a field of m or not a value of the
// field's enum.
func misfit(m protoreflect.MessageDescriptor, given map[string]any, path string) *problem {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		f := fieldNamed(m, name)
		if f == nil {
			return &problem{at, fmt.Sprintf("%s has no such field", m.Name())}
		}
		if p := misfitValue(f, given[name], at); p != nil {
			return p
		}
	}
	return nil
}

func misfitValue(f protoreflect.FieldDescriptor, raw any, at string) *problem {
	if list, ok := raw.([]any); ok && f.IsList() {
		for i, one := range list {
			if p := misfitValue(f, one, item(at, i)); p != nil {
				return p
			}
		}
		return nil
	}
	switch v := raw.(type) {
	case map[string]any:
		if f.Kind() == protoreflect.MessageKind && !f.IsMap() &&
			f.Message().ParentFile().Package() != "google.protobuf" {
			return misfit(f.Message(), v, at)
		}
	case string:
		if f.Kind() == protoreflect.EnumKind && f.Enum().Values().ByName(protoreflect.Name(v)) == nil {
			return &problem{at, fmt.Sprintf("expected one of %s, got %q", enumNames(f.Enum()), v)}
		}
	}
	return nil
}

func enumNames(e protoreflect.EnumDescriptor) string {
	var out []string
	for i := range e.Values().Len() {
		out = append(out, string(e.Values().Get(i).Name()))
	}
	return strings.Join(out, ", ")
}

// oneLine returns an error's text as one line with single spaces: protojson varies its spaces at random.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func clone[M proto.Message](m M) M { return proto.Clone(m).(M) }
