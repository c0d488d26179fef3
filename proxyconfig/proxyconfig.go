// Package proxyconfig reads ProxyConfig, the settings of a proxy, and merges several of them. Injection uses it to find
// out what a pod gets, and the agent inside a pod to find out what applies there: both start from Default and must
// merge in the same way.
package proxyconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	"sigs.k8s.io/yaml"
)

// Default returns the settings of a proxy if users give none.
func Default() *meshconfig.ProxyConfig {
	return &meshconfig.ProxyConfig{
		BinaryPath:               "/usr/local/bin/envoy",
		ClusterName:              &meshconfig.ProxyConfig_ServiceCluster{ServiceCluster: "istio-proxy"},
		ConfigPath:               "./etc/istio/proxy",
		ControlPlaneAuthPolicy:   meshconfig.AuthenticationPolicy_MUTUAL_TLS,
		DiscoveryAddress:         "istiod.istio-system.svc:15012",
		DrainDuration:            durationpb.New(45 * time.Second),
		ProxyAdminPort:           15000,
		StatNameLength:           189,
		StatusPort:               15020,
		TerminationDrainDuration: durationpb.New(5 * time.Second),
	}
}

// Lay sets those fields of onto that a text names. Each field is replaced as a whole, except proxyMetadata, which is
// merged by name. A field that ProxyConfig does not have is an error.
func Lay(onto *meshconfig.ProxyConfig, text string) error {
	given, read, err := read(text, protojson.UnmarshalOptions{})
	if err == nil {
		lay(onto, read, given)
	}
	return err
}

// LayKnown works like Lay for a text that a newer release may have written: it ignores fields that ProxyConfig does not
// have, and returns the names of the top-level ones.
func LayKnown(onto *meshconfig.ProxyConfig, text string) (unknown []string, err error) {
	given, read, err := read(text, protojson.UnmarshalOptions{DiscardUnknown: true})
	if err != nil {
		return nil, err
	}
	return lay(onto, read, given), nil
}

// Read parses a ProxyConfig from YAML.
func Read(text string) (*meshconfig.ProxyConfig, error) {
	_, out, err := read(text, protojson.UnmarshalOptions{})
	return out, err
}

// lay merges read into onto. It returns the names in given that ProxyConfig does not have.
func lay(onto, read *meshconfig.ProxyConfig, given map[string]json.RawMessage) (unknown []string) {
	metadata := MergedMap(onto.ProxyMetadata, read.ProxyMetadata)
	to, from := onto.ProtoReflect(), read.ProtoReflect()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field := fieldNamed(to.Descriptor(), name)
		switch {
		case field == nil:
			unknown = append(unknown, name)
		case from.Has(field):
			to.Set(field, from.Get(field))
		default:
			to.Clear(field)
		}
	}
	onto.ProxyMetadata = metadata
	return unknown
}

func fieldNamed(m protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := m.Fields().ByJSONName(name); f != nil {
		return f
	}
	return m.Fields().ByTextName(name)
}

// read returns the fields that a text names, as JSON and as a message.
func read(text string, o protojson.UnmarshalOptions) (map[string]json.RawMessage, *meshconfig.ProxyConfig, error) {
	const expected = "expected a ProxyConfig as YAML or JSON: %s"
	given, out := map[string]json.RawMessage{}, &meshconfig.ProxyConfig{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, nil, fmt.Errorf(expected, oneLine(err))
	}
	if string(asJSON) == "null" {
		return given, out, nil
	}
	if err := json.Unmarshal(asJSON, &given); err != nil {
		return nil, nil, fmt.Errorf(expected, oneLine(err))
	}
	if err := o.Unmarshal(asJSON, out); err != nil {
		return nil, nil, fmt.Errorf(expected, oneLine(err))
	}
	return given, out, nil
}

// oneLine returns an error's text as one line with single spaces: protojson varies its spaces at random.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// MergedMap returns the pairs of both maps; over takes precedence.
func MergedMap(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}
