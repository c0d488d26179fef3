package sidecar

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Request is a request of either protocol.
type Request struct {
	// Type is what it is about; URL stands for a type that is not known.
	Type Type
	url  string

	delta   bool
	node    []byte      // encoded; the first of a stream alone has it
	names   []byte      // encoded
	initial []*Resource // what the client has, in the first request of a stream
	version string
	nonce   string
	refusal string // why the response of the nonce is refused
}

// Numbers of the fields of requests.
const (
	sotwVersion, sotwNode, sotwURL, sotwNonce, sotwError                         = 1, 2, 4, 5, 6
	deltaNode, deltaURL, deltaInitial, deltaNonceAt, deltaError                  = 1, 2, 5, 6, 7
	statusCode, statusMessage, invalidArgument                                   = 1, 2, 3
	mapKey, mapValue                                            protowire.Number = 1, 2
)

// Append encodes the request.
func (r *Request) Append(b []byte) []byte {
	if r.delta {
		b = appendBytes(b, deltaNode, r.node)
		b = appendText(b, deltaURL, r.url)
		b = append(b, r.names...)
		for _, have := range r.initial {
			entry := appendString(appendString(nil, mapKey, have.Name), mapValue, have.version)
			b = appendBytes(b, deltaInitial, entry)
		}
		b = appendText(b, deltaNonceAt, r.nonce)
		return r.appendRefusal(b, deltaError)
	}
	b = appendText(b, sotwVersion, r.version)
	b = appendBytes(b, sotwNode, r.node)
	b = append(b, r.names...)
	b = appendText(b, sotwURL, r.url)
	b = appendText(b, sotwNonce, r.nonce)
	return r.appendRefusal(b, sotwError)
}

func (r *Request) appendRefusal(b []byte, num protowire.Number) []byte {
	if r.refusal == "" {
		return b
	}
	status := protowire.AppendVarint(protowire.AppendTag(nil, statusCode, protowire.VarintType), invalidArgument)
	return appendBytes(b, num, appendString(status, statusMessage, r.refusal))
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

func appendText(b []byte, num protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return appendString(b, num, v)
}
