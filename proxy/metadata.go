package proxy

import (
	"errors"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// ErrNode reports that a client's Node cannot be understood; the wrapping error says what was expected.
var ErrNode = errors.New("invalid node")

// ErrClaim reports that a client claims to be somebody else than it has proven to be.
var ErrClaim = errors.New("authorization failed")

// metadataKey is a key of a node's metadata that Accept reads. It reads no others: see Metadata.
type metadataKey int

const (
	keyNamespace metadataKey = iota
	keyCluster
	keyVersion
	keyLabels
	keyName
	keyNetwork
	keyAccount
	keyAddresses
	keyGenerator
	keyInterception
	keyHTTP10
	keyUnprivileged
	keyDNSCapture

	numKeys = 13
)

func (k metadataKey) String() string {
	return [numKeys]string{"NAMESPACE", "CLUSTER_ID", "ISTIO_VERSION", "LABELS", "NODE_NAME", "NETWORK",
		"SERVICE_ACCOUNT", "INSTANCE_IPS",
		"GENERATOR", "INTERCEPTION_MODE", "HTTP10", "UNPRIVILEGED_POD", "DNS_CAPTURE"}[k]
}

// Metadata returns the keys of a node's metadata that Accept reads. A receiver of nodes need not decode the others.
func Metadata() (out []string) {
	for k := range metadataKey(numKeys) {
		out = append(out, k.String())
	}
	return out
}

// Extensions returns the types of a node's extensions that Accept looks for.
func Extensions() []string { return slices.Sorted(maps.Keys(value.ExtensionTypes())) }

// text returns the string under a key of the metadata; empty if there is none.
func text(md map[string]*structpb.Value, k metadataKey) string {
	return md[k.String()].GetStringValue()
}
