package wire

import "google.golang.org/protobuf/encoding/protowire"

// Request is a discovery request of either variant of xDS. Its large parts stay encoded, so that clients with equal
// requests share them.
type Request struct {
	// Delta says that it is a request of the incremental variant.
	Delta   bool
	TypeURL string
	// Node is the encoded node. Only the first request of a stream has one.
	Node []byte
	// Names are the subscribed names, encoded by AppendName, and in the incremental variant also the unsubscribed ones,
	// encoded by AppendUnsubscribe.
	Names []byte
	// Versions are the resources that the client has, encoded by AppendVersion. Only the first request for a type on an
	// incremental stream has any.
	Versions []byte
	// Version and Nonce are those of the answered response. Only State-of-the-World requests have a Version.
	Version, Nonce string
	// Refusal is the error of a NACK; empty for an ACK.
	Refusal string
}

// Field numbers of requests. Those of names are the same in both variants.
const (
	sotwVersion, sotwNode, sotwURL, sotwNonce, sotwError                        = 1, 2, 4, 5, 6
	deltaNode, deltaURL, deltaVersions, deltaNonce, deltaError                  = 1, 2, 5, 6, 7
	requestNames, requestUnsubscribe                                            = 3, 4
	statusCode, statusMessage, invalidArgument                                  = 1, 2, 3
	mapKey, mapValue                                           protowire.Number = 1, 2
)

// Parts encodes the request in three consecutive parts, without copying Names.
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
