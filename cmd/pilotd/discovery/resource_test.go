package discovery

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	ndsv1 "github.com/pilotd/pilotd/proto/nds/v1"
	"github.com/pilotd/pilotd/xdstype"
)

// response is what is remembered of one response. Immutable.
type response struct {
	url, version, nonce string
	names, removed      []string
	fresh               []string          // those of names that the client did not have like this
	versions            map[string]string // of each resource; Delta only
	sum                 [sha256.Size]byte // of all its bytes
}

func sotwResponse(r *discoveryv3.DiscoveryResponse, b []byte) response {
	out := response{url: r.TypeUrl, version: r.VersionInfo, nonce: r.Nonce, sum: sha256.Sum256(b)}
	for _, a := range r.Resources {
		m, err := a.UnmarshalNew()
		if err != nil {
			panic(err)
		}
		out.names = append(out.names, resourceName(m))
	}
	return out
}

func deltaResponse(r *discoveryv3.DeltaDiscoveryResponse, b []byte) response {
	out := response{url: r.TypeUrl, nonce: r.Nonce, removed: r.RemovedResources, versions: map[string]string{},
		sum: sha256.Sum256(b)}
	for _, res := range r.Resources {
		out.names = append(out.names, res.Name)
		out.versions[res.Name] = res.Version
	}
	return out
}

// String returns the response in a line: "EDS outbound|80||web.shop.svc.cluster.local".
func (r response) String() string {
	t, _ := xdstype.Of(r.url)
	out := append([]string{t.String()}, r.names...)
	for _, n := range r.removed {
		out = append(out, "-"+n)
	}
	return strings.Join(out, " ")
}

// has reports whether the response carries the resource.
func (r response) has(name string) bool { return slices.Contains(r.names, name) }

// kindOf returns the last part of a type URL.
func kindOf(url string) string { return url[strings.LastIndexByte(url, '.')+1:] }

func resourceName(m proto.Message) string {
	switch m := m.(type) {
	case *endpointv3.ClusterLoadAssignment:
		return m.ClusterName
	case *clusterv3.Cluster:
		return m.Name
	case *listenerv3.Listener:
		return m.Name
	case *routev3.RouteConfiguration:
		return m.Name
	case *ndsv1.NameTable:
		return ""
	}
	panic(fmt.Sprintf("%T", m))
}

// dependencies returns the EDS names of a cluster, or the RDS names of a listener.
func dependencies(typeURL, b string) []string {
	if typeURL == xdstype.ClusterURL {
		m := &clusterv3.Cluster{}
		if err := proto.Unmarshal([]byte(b), m); err != nil {
			panic(err)
		}
		if m.GetType() != clusterv3.Cluster_EDS {
			return nil
		}
		if n := m.GetEdsClusterConfig().GetServiceName(); n != "" {
			return []string{n}
		}
		return []string{m.Name}
	}
	m := &listenerv3.Listener{}
	if err := proto.Unmarshal([]byte(b), m); err != nil {
		panic(err)
	}
	var out []string
	for _, fc := range append(m.GetFilterChains(), m.GetDefaultFilterChain()) {
		for _, f := range fc.GetFilters() {
			hcm := &hcmv3.HttpConnectionManager{}
			if f.GetTypedConfig().MessageIs(hcm) && f.GetTypedConfig().UnmarshalTo(hcm) == nil && hcm.GetRds() != nil {
				out = append(out, hcm.GetRds().GetRouteConfigName())
			}
		}
	}
	return out
}
