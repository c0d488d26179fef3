package overlay

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// proxyConfigJSON returns a ProxyConfig as JSON, without what agents assume anyway.
func proxyConfigJSON(of, assumes *meshconfig.ProxyConfig) (string, error) {
	config := proto.CloneOf(of)
	assumed := assumes.ProtoReflect()
	config.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if assumed.Has(f) && v.Equal(assumed.Get(f)) {
			config.ProtoReflect().Clear(f)
		}
		return true
	})
	return compactJSON(config)
}

// compactJSON returns a message as JSON without spaces, which protojson puts in at random.
func compactJSON(m proto.Message) (string, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Compact(&b, text)
	return b.String(), err
}
