package gen

import (
	"cmp"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/snapshot/value"
)

// InboundNames are what the chains of one port of a workload are called. All else in them is the same for every port
// and workload of an equal kind.
type InboundNames struct {
	Bind, Host, StatPrefix string
	Target, Port           int32
	Undeclared             bool
	// Policy is the object that says what the port asks of its clients.
	Policy value.ObjectKey
	// Access are the objects that say which requests the port takes.
	Access value.Policies
	// Sidecar and Defined are the objects that they come from, of which one is set.
	Sidecar value.Meta
	Defined value.ObjectKey
}

// The texts of InboundNames.
const (
	ChainName = iota
	ChainPort // the content of a wrapped number
	ChainCluster
	ChainVirtualHost
	ChainOperation
	ChainHTTPStat
	ChainTCPStat
)

func (k InboundChainsKey) names() InboundNames {
	return InboundNames{
		Bind: k.Bind, Host: k.Host, StatPrefix: k.StatPrefix, Target: int32(k.Target), Port: int32(k.Port),
		Undeclared: k.Undeclared || k.Target == 0, Policy: k.Policy,
		Access: k.Access.Policies, Sidecar: k.Sidecar, Defined: k.Defined,
	}
}

// Split returns the Key of chains that differ from those of k, a declared port's, in their texts alone, the same for
// all such, and the names that make the texts of k.
func (k InboundChainsKey) Split() (shared InboundChainsKey, names InboundNames) {
	shared, names = k, k.names()
	shared.Target, shared.Port, shared.Host, shared.StatPrefix = 1, 1, "", ""
	shared.Defined, shared.Policy = value.ObjectKey{}, value.ObjectKey{}
	return shared, names
}

// Texts returns the texts that the names make.
func (n InboundNames) Texts() []string {
	port := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(n.Target))
	return []string{
		ChainName: n.chain(true), ChainPort: string(port), ChainCluster: n.cluster(), ChainVirtualHost: n.virtualHost(),
		ChainOperation: n.operation(),
		ChainHTTPStat:  n.httpStat() + ";", ChainTCPStat: n.tcpStat(),
	}
}

func (n InboundNames) chain(http bool) string {
	switch {
	case !n.Undeclared:
		return ListenerName(n.Bind, int(n.Target))
	case http:
		return "virtualInbound-catchall-http"
	}
	return "virtualInbound"
}

// cluster returns where the chains forward to.
func (n InboundNames) cluster() string {
	if n.Undeclared {
		return "InboundPassthroughCluster"
	}
	return InboundClusterName(int(n.Target))
}

// virtualHost and operation tell the service in telemetry.
func (n InboundNames) virtualHost() string { return "inbound|http|" + strconv.Itoa(int(n.Port)) }
func (n InboundNames) operation() string   { return n.Host + ":" + strconv.Itoa(int(n.Port)) + "/*" }

// httpStat and tcpStat name the statistics.
func (n InboundNames) httpStat() string {
	if n.Undeclared {
		return n.cluster()
	}
	return "inbound_" + n.chain(true)
}

func (n InboundNames) tcpStat() string { return cmp.Or(n.StatPrefix, n.cluster()) }
