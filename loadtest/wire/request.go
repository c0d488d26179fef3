package wire

import "google.golang.org/protobuf/encoding/protowire"

// Request is a discovery request of either protocol. What is large in it is kept encoded, so that clients that send
// the same share it.
type Request struct {
	// Delta tells that the request is of the incremental protocol.
	Delta   bool
	TypeURL string
	// Node is the encoded node. Only the first request of a stream has one.
	Node []byte
	// Names are the names that the request subscribes to, as AppendName encodes them, and in the incremental protocol
	// those that it unsubscribes from, as AppendUnsubscribe does.
	Names []byte
	// Versions are what the client has, as AppendVersion encodes it. Only the first request that a stream of the
	// incremental protocol makes for a type has any.
	Versions []byte
	// Version and Nonce are those of the response that is answered. Only State-of-the-World requests have a Version.
	Version, Nonce string
	// Refusal says why the response is refused; empty: it is accepted.
	Refusal string
}

// Numbers of the fields of requests. Those of names are the same in both protocols.
const (
	sotwVersion, sotwNode, sotwURL, sotwNonce, sotwError                        = 1, 2, 4, 5, 6
	deltaNode, deltaURL, deltaVersions, deltaNonce, deltaError                  = 1, 2, 5, 6, 7
	requestNames, requestUnsubscribe                                            = 3, 4
	statusCode, statusMessage, invalidArgument                                  = 1, 2, 3
	mapKey, mapValue                                           protowire.Number = 1, 2
)

// Parts encodes the request in three parts that belong one behind the other, without copying Names.
func (r *Request) Parts() (head, names, tail []byte) {
	if r.Delta {
		head = appendText(appendBytes(nil, deltaNode, r.Node), deltaURL, r.TypeURL)
		tail = appendText(r.Versions[:len(r.Versions):len(r.Versions)], deltaNonce, r.Nonce)
		return head, r.Names, r.appendRefusal(tail, deltaError)
	}
	head = appendBytes(appendText(nil, sotwVersion, r.Version), sotwNode, r.Node)
	tail = appendText(appendText(nil, sotwURL, r.TypeURL), sotwNonce, r.Nonce)
	return head, r.Names, r.appendRefusal(tail, sotwError)
}

func (r *Request) appendRefusal(b []byte, num protowire.Number) []byte {
	if r.Refusal == "" {
		return b
	}
	status := protowire.AppendVarint(protowire.AppendTag(nil, statusCode, protowire.VarintType), invalidArgument)
	return appendBytes(b, num, appendString(status, statusMessage, r.Refusal))
}

// AppendName appends a name that a request subscribes to.
func AppendName(b []byte, name string) []byte { return appendString(b, requestNames, name) }

// AppendUnsubscribe appends a name that a request of the incremental protocol unsubscribes from.
func AppendUnsubscribe(b []byte, name string) []byte {
	return appendString(b, requestUnsubscribe, name)
}

// AppendVersion appends the name and the version of a resource that a client has.
func AppendVersion(b []byte, name, version string) []byte {
	return appendBytes(b, deltaVersions, appendString(appendString(nil, mapKey, name), mapValue, version))
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

func appendString(b []byte, num protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
}
