package overlay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// istioFunctions returns the functions that templates written for Istio call beside sprig's.
func istioFunctions(around Surroundings) template.FuncMap {
	return template.FuncMap{
		"annotation": func(meta metav1.ObjectMeta, name string, otherwise any) string {
			if v, ok := meta.Annotations[name]; ok {
				return v
			}
			return fmt.Sprint(otherwise)
		},
		"env": func(name, otherwise string) string { return cmp.Or(around.Env[name], otherwise) },
		"isset": func(m map[string]string, key string) bool {
			_, ok := m[key]
			return ok
		},
		"valueOrDefault": func(value, otherwise any) any {
			if value == nil || value == "" {
				return otherwise
			}
			return value
		},
		"contains":            func(needle, in string) bool { return strings.Contains(in, needle) },
		"toLower":             strings.ToLower,
		"directory":           directory,
		"formatDuration":      func(d *durationpb.Duration) string { return d.AsDuration().String() },
		"excludeInboundPort":  func(port any, list string) string { return excludeInboundPort(fmt.Sprint(port), list) },
		"includeInboundPorts": containerPorts,
		"applicationPorts":    containerPorts,
		"kubevirtInterfaces":  func(s string) string { return s },
		"excludeInterfaces":   func(s string) string { return s },
		"appendMultusNetwork": appendMultusNetwork,
		"indent":              indent,
		"toYaml":              toYAML,
		"toJSON":              func(m map[string]string) (string, error) { return toJSON(m) },
		"structToJSON":        toJSON,
		"protoToJSON":         func(v any) (string, error) { return protoToJSON(v, around.DefaultProxy) },
		"fromJSON":            fromJSON,
		"strdict":             strdict,
		"mergeMaps":           mergeMaps,
		"toJsonMap":           func(all ...map[string]string) (string, error) { return toJSON(mergeMaps(all...)) },
		"omit":                omit,
		"omitNil":             omitNil,
	}
}

// excludeInboundPort adds a port to a list of ports, unless it is there or is 0.
func excludeInboundPort(port, excluded string) string {
	port = strings.TrimSpace(port)
	if port == "" || port == "0" {
		return excluded
	}
	if excluded == "" {
		return port
	}
	if slices.Contains(strings.Split(excluded, ","), port) {
		return excluded
	}
	return excluded + "," + port
}

// containerPorts returns the TCP ports that the pod's containers but the proxy's declare.
func containerPorts(containers []corev1.Container) string {
	var out []string
	for i := range containers {
		if containers[i].Name == ProxyContainer {
			continue
		}
		for _, p := range containers[i].Ports {
			if p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP {
				out = append(out, strconv.Itoa(int(p.ContainerPort)))
			}
		}
	}
	return strings.Join(out, ",")
}

// appendMultusNetwork adds a network to the annotation that Multus reads, which is a list of names or of JSON objects.
func appendMultusNetwork(networks, network string) string {
	if networks == "" {
		return network
	}
	if end := strings.LastIndexByte(networks, ']'); end >= 0 {
		namespace, name, ok := strings.Cut(network, "/")
		if !ok {
			namespace, name = "", network
		}
		var has []struct {
			Name string `json:"name"`
		}
		if json.Unmarshal([]byte(networks), &has) != nil {
			return networks // Multus refuses it, whatever is added
		}
		for _, n := range has {
			if n.Name == name {
				return networks
			}
		}
		entry := `{"name": ` + strconv.Quote(name) + `}`
		if namespace != "" {
			entry = `{"name": ` + strconv.Quote(name) + `, "namespace": ` + strconv.Quote(namespace) + `}`
		}
		return networks[:end] + ", " + entry + networks[end:]
	}
	for n := range strings.SplitSeq(networks, ",") {
		if strings.TrimSpace(n) == network {
			return networks
		}
	}
	return networks + ", " + network
}

// indent puts spaces before each line but the first.
func indent(spaces int, text string) string {
	if spaces < 0 || spaces > 200 {
		spaces = 0
	}
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", spaces))
}

func directory(file string) string {
	dir, _ := path.Split(file)
	return dir
}

func toYAML(v any) (string, error) {
	out, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(out), "\n"), err
}

func toJSON(v any) (string, error) {
	if m, ok := v.(map[string]string); ok && m == nil {
		return "{}", nil
	}
	out, err := json.Marshal(v)
	return string(out), err
}

func protoToJSON(v any, assumed *meshconfig.ProxyConfig) (string, error) {
	switch m := v.(type) {
	case *meshconfig.ProxyConfig:
		return proxyConfigJSON(m, assumed)
	case proto.Message:
		return compactJSON(m)
	}
	return "", fmt.Errorf("expected a message, got %T", v)
}

func fromJSON(text string) (any, error) {
	var out any
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	err := d.Decode(&out)
	return out, err
}

// strdict makes a map of keys and values that take turns.
func strdict(words ...string) map[string]string {
	out := make(map[string]string, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		out[words[i]] = words[i+1]
	}
	return out
}

func mergeMaps(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

func omit(m map[string]string, keys ...string) map[string]string {
	out := maps.Clone(m)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

func omitNil(m map[string]any) map[string]any {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	return out
}
