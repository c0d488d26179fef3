package gen

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/gen/check"
)

// MarshalSorted encodes m with its maps sorted by key.
func MarshalSorted(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		// invalid UTF-8 is refused by ingest
		panic("gen: " + string(m.ProtoReflect().Descriptor().FullName()) + ": " + err.Error())
	}
	return b
}

const typePrefix = "type.googleapis.com/"

// anyOf packs m, which holds no map of more than one entry. One that breaks a rule is packed as what is wrong with it:
// see check.Packed.
func anyOf(m proto.Message) *anypb.Any {
	if refusal := check.Refusal(m); refusal != "" {
		return &anypb.Any{TypeUrl: refusal}
	}
	return &anypb.Any{TypeUrl: typePrefix + string(m.ProtoReflect().Descriptor().FullName()), Value: Marshal(m)}
}

// anySorted packs m, whose maps may have several entries, as anyOf does.
func anySorted(m proto.Message) *anypb.Any {
	if refusal := check.Refusal(m); refusal != "" {
		return &anypb.Any{TypeUrl: refusal}
	}
	return &anypb.Any{TypeUrl: typePrefix + string(m.ProtoReflect().Descriptor().FullName()), Value: MarshalSorted(m)}
}
