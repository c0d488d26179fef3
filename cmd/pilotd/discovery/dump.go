package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/shard"
	"github.com/pilotd/pilotd/xdstype"
)

// configDump returns, as an envoy.admin.v3.ConfigDump, what the proxy named by the parameter proxyID (a node id, or
// pod.namespace) has really been sent and not been told to remove. The parameter include_eds adds endpoints.
func (s *Server) configDump(r *http.Request) (any, error) {
	id := r.FormValue("proxyID")
	if id == "" {
		return nil, errors.New("parameter proxyID is missing: want a node id or pod.namespace")
	}
	clients := s.Shards.Find(id)
	if len(clients) == 0 {
		return nil, fmt.Errorf("proxyID=%s: no such proxy is connected here", id)
	}
	parts := []proto.Message{}
	for _, t := range []xdstype.Type{xdstype.Cluster, xdstype.Listener, xdstype.Route, xdstype.Endpoint} {
		if t == xdstype.Endpoint && !r.Form.Has("include_eds") {
			continue
		}
		part, err := dumpOf(t, clients[len(clients)-1].Types[t])
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	dump := &adminv3.ConfigDump{}
	for _, p := range parts {
		a, err := anypb.New(p)
		if err != nil {
			return nil, err
		}
		dump.Configs = append(dump.Configs, a)
	}
	b, err := protojson.MarshalOptions{Resolver: anyType{protoregistry.GlobalTypes}}.Marshal(dump)
	return json.RawMessage(b), err
}

// dumpOf returns the part of a dump for one type.
func dumpOf(t xdstype.Type, ts shard.TypeStatus) (proto.Message, error) {
	at := timestamppb.New(ts.Sent.Time)
	clusters, listeners := &adminv3.ClustersConfigDump{VersionInfo: ts.Sent.Version},
		&adminv3.ListenersConfigDump{VersionInfo: ts.Sent.Version}
	routes, endpoints := &adminv3.RoutesConfigDump{}, &adminv3.EndpointsConfigDump{}
	for _, e := range ts.Entries {
		a, err := unframed(e)
		if err != nil {
			return nil, err
		}
		switch t {
		case xdstype.Cluster:
			clusters.DynamicActiveClusters = append(clusters.DynamicActiveClusters,
				&adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: e.Version(), Cluster: a, LastUpdated: at})
		case xdstype.Listener:
			state := &adminv3.ListenersConfigDump_DynamicListenerState{VersionInfo: e.Version(), Listener: a,
				LastUpdated: at}
			listeners.DynamicListeners = append(listeners.DynamicListeners,
				&adminv3.ListenersConfigDump_DynamicListener{Name: e.Name(), ActiveState: state})
		case xdstype.Route:
			routes.DynamicRouteConfigs = append(routes.DynamicRouteConfigs,
				&adminv3.RoutesConfigDump_DynamicRouteConfig{VersionInfo: e.Version(), RouteConfig: a, LastUpdated: at})
		default:
			endpoints.DynamicEndpointConfigs = append(endpoints.DynamicEndpointConfigs,
				&adminv3.EndpointsConfigDump_DynamicEndpointConfig{VersionInfo: e.Version(), EndpointConfig: a,
					LastUpdated: at})
		}
	}
	return map[xdstype.Type]proto.Message{xdstype.Cluster: clusters, xdstype.Listener: listeners, xdstype.Route: routes,
		xdstype.Endpoint: endpoints}[t], nil
}

// unframed returns the Any that a client was sent.
func unframed(e *encodecache.Entry) (*anypb.Any, error) {
	var b []byte
	for _, p := range e.EncodedAny().Pieces {
		b = append(b, p...)
	}
	a := &anypb.Any{}
	return a, proto.Unmarshal(b, a)
}

// anyType resolves the types inside an Any. It treats a type that this build does not know, such as one of Istio's own
// filters, as a message without fields, so that the rest of the dump is still readable.
type anyType struct{ *protoregistry.Types }

// FindMessageByURL implements protoregistry.MessageTypeResolver.
func (r anyType) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if t, err := r.Types.FindMessageByURL(url); err == nil {
		return t, nil
	}
	full := url[strings.LastIndexByte(url, '/')+1:]
	dot := strings.LastIndexByte(full, '.')
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String(full + ".proto"), Syntax: proto.String("proto3"), Package: proto.String(full[:max(dot, 0)]),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String(full[dot+1:])}},
	}, nil)
	if err != nil {
		return nil, protoregistry.NotFound
	}
	return dynamicpb.NewMessageType(file.Messages().Get(0)), nil
}
