package sidecar

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/xdstype"
)

// Request is a request of either protocol.
type Request struct {
	// Type is what it is about; URL stands for a type that is not known.
	Type xdstype.Type
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

// Parts encodes the request, in three parts; the names, which can be many, are those of all clients that ask for the
// same.
func (r *Request) Parts() (head, names, tail []byte) {
	if r.delta {
		head = appendText(appendBytes(nil, deltaNode, r.node), deltaURL, r.url)
		for _, have := range r.initial {
			entry := appendString(appendString(nil, mapKey, have.Name), mapValue, have.version)
			tail = appendBytes(tail, deltaInitial, entry)
		}
		return head, r.names, r.appendRefusal(appendText(tail, deltaNonceAt, r.nonce), deltaError)
	}
	head = appendBytes(appendText(nil, sotwVersion, r.version), sotwNode, r.node)
	tail = appendText(appendText(nil, sotwURL, r.url), sotwNonce, r.nonce)
	return head, r.names, r.appendRefusal(tail, sotwError)
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
