//go:build !vtprotobuf

package gen

import "google.golang.org/protobuf/proto"

// Encoder names the encoder that Marshal uses in this build.
const Encoder = "protobuf-go"

// Marshal encodes m, which holds no map of more than one entry.
func Marshal(m proto.Message) []byte { return MarshalSorted(m) }
