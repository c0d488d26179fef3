//go:build vtprotobuf

package gen

import "google.golang.org/protobuf/proto"

// Encoder names the encoder that Marshal uses in this build.
const Encoder = "vtprotobuf"

// Marshal encodes m, which holds no map of more than one entry.
func Marshal(m proto.Message) []byte {
	vt, ok := m.(interface{ MarshalVTStrict() ([]byte, error) })
	if !ok {
		return MarshalSorted(m)
	}
	b, err := vt.MarshalVTStrict()
	if err != nil {
		// invalid UTF-8 is refused by ingest
		panic("gen: " + string(m.ProtoReflect().Descriptor().FullName()) + ": " + err.Error())
	}
	return b
}
