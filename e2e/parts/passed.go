package parts

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Passed is one response of pilotd that went through a Tap.
type Passed struct {
	Stream    int
	TypeURL   string
	Nonce     string
	Resources []Resource
	Removed   []string
	// Invalid lists the resources that violate the constraints of their types.
	Invalid []string
}

// Resource is one resource of a response: its name and the hash of its bytes.
type Resource struct {
	Name   string
	Digest [sha256.Size]byte
}

// Names returns the names of the resources, sorted.
func (p Passed) Names() []string {
	names := make([]string, len(p.Resources))
	for i, r := range p.Resources {
		names[i] = r.Name
	}
	slices.Sort(names)
	return names
}

func (p Passed) String() string {
	return fmt.Sprintf("stream %d %s nonce %s: %v removed %v", p.Stream, short(p.TypeURL), p.Nonce, p.Names(),
		p.Removed)
}

// short returns the last part of a type URL.
func short(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '.')+1:] }

func passedSotW(r *discoverypb.DiscoveryResponse) Passed {
	p := Passed{TypeURL: r.TypeUrl, Nonce: r.Nonce}
	for _, packed := range r.Resources {
		p.add(resourceName(packed), packed)
	}
	return p
}

func passedDelta(r *discoverypb.DeltaDiscoveryResponse) Passed {
	p := Passed{TypeURL: r.TypeUrl, Nonce: r.Nonce, Removed: r.RemovedResources}
	for _, res := range r.Resources {
		p.add(res.Name, res.Resource)
	}
	return p
}

func (p *Passed) add(name string, packed *anypb.Any) {
	p.Resources = append(p.Resources, Resource{Name: name, Digest: sha256.Sum256(packed.GetValue())})
	m, err := packed.UnmarshalNew()
	if err != nil {
		p.Invalid = append(p.Invalid, fmt.Sprintf("%s: %v", name, err))
		return
	}
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			p.Invalid = append(p.Invalid, fmt.Sprintf("%s: %v", name, err))
		}
	}
}

// resourceName returns the name inside a resource; a SotW response has it nowhere else.
func resourceName(packed *anypb.Any) string {
	m, err := packed.UnmarshalNew()
	if err != nil {
		return fmt.Sprintf("(does not decode: %v)", err)
	}
	switch r := m.(type) {
	case *clusterpb.Cluster:
		return r.Name
	case *endpointpb.ClusterLoadAssignment:
		return r.ClusterName
	case *listenerpb.Listener:
		return r.Name
	case *routepb.RouteConfiguration:
		return r.Name
	}
	return fmt.Sprintf("(a %s)", short(packed.TypeUrl))
}

// Holdings are the resources of a client: by type and name, the hash of the bytes.
type Holdings map[string]map[string][sha256.Size]byte

// Hold returns the resources of a client after those responses, ignoring refusals.
func Hold(answers []Passed) Holdings {
	h := make(Holdings)
	for _, p := range answers {
		if h[p.TypeURL] == nil {
			h[p.TypeURL] = make(map[string][sha256.Size]byte)
		}
		for _, r := range p.Resources {
			h[p.TypeURL][r.Name] = r.Digest
		}
		for _, name := range p.Removed {
			delete(h[p.TypeURL], name)
		}
	}
	return h
}

// Repeats returns the resources in those responses that the client already had, as "Type name".
func (h Holdings) Repeats(answers []Passed) []string {
	var repeats []string
	for _, p := range answers {
		for _, r := range p.Resources {
			if digest, ok := h[p.TypeURL][r.Name]; ok && digest == r.Digest {
				repeats = append(repeats, short(p.TypeURL)+" "+r.Name)
			}
		}
	}
	return repeats
}
