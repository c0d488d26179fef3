package sidecar

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// conversation is a client with a server that the test plays.
type conversation struct {
	t      *testing.T
	client *Client
	parser parser
	nonce  int
}

func converse(t *testing.T, delta bool) *conversation {
	table := NewTable(Marks{Endpoint: "198.18.", Route: "/change-"})
	node, err := proto.Marshal(node("n"))
	must(t, err)
	return &conversation{t: t, client: NewClient(table, Spec{Node: node, Delta: delta}), parser: parser{table: table, form: form{delta: delta}}}
}

// say gives the client a response, byte by byte, and returns what it says of it and sends.
func (c *conversation) say(of Type, removed []string, resources ...proto.Message) (Receipt, string) {
	c.t.Helper()
	c.nonce++
	var m proto.Message
	if c.client.spec.Delta {
		d := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: of.URL(), Nonce: fmt.Sprint(c.nonce), RemovedResources: removed}
		for _, r := range resources {
			d.Resources = append(d.Resources, &discoveryv3.Resource{Name: "ignored", Version: "1", Resource: wrap(c.t, r)})
		}
		m = d
	} else {
		s := &discoveryv3.DiscoveryResponse{TypeUrl: of.URL(), Nonce: fmt.Sprint(c.nonce), VersionInfo: fmt.Sprint("v", c.nonce), Canary: true}
		for _, r := range resources {
			s.Resources = append(s.Resources, wrap(c.t, r))
		}
		m = s
	}
	b, err := proto.Marshal(m)
	must(c.t, err)
	b = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
	for i := range b {
		rest, complete, err := c.parser.feed(b[i : i+1])
		must(c.t, err)
		if len(rest) > 0 || complete != (i == len(b)-1) {
			c.t.Fatal("complete after", i+1, "of", len(b))
		}
	}
	receipt, requests := c.client.Take(&c.parser.response)
	c.parser.reset()
	return receipt, c.print(requests)
}

// print decodes requests with the generated code.
func (c *conversation) print(requests []Request) string {
	var lines []string
	for i := range requests {
		b := requests[i].Append(nil)
		var line []string
		add := func(what string, v any) {
			if s := fmt.Sprint(v); s != "" && s != "[]" && s != "map[]" {
				line = append(line, what+s)
			}
		}
		if c.client.spec.Delta {
			var r discoveryv3.DeltaDiscoveryRequest
			must(c.t, proto.Unmarshal(b, &r))
			add("", short(r.TypeUrl))
			add("node=", r.Node.GetId())
			add("+", r.ResourceNamesSubscribe)
			add("-", r.ResourceNamesUnsubscribe)
			add("has=", r.InitialResourceVersions)
			add("nonce=", r.ResponseNonce)
			add("error=", r.ErrorDetail.GetMessage())
		} else {
			var r discoveryv3.DiscoveryRequest
			must(c.t, proto.Unmarshal(b, &r))
			add("", short(r.TypeUrl))
			add("node=", r.Node.GetId())
			add("", r.ResourceNames)
			add("version=", r.VersionInfo)
			add("nonce=", r.ResponseNonce)
			add("error=", r.ErrorDetail.GetMessage())
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return strings.Join(lines, "; ")
}

func short(url string) string {
	if t, ok := typeOf([]byte(url)); ok {
		return t.String()
	}
	return url
}

func wrap(t *testing.T, m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	must(t, err)
	return a
}

func cluster(name string, connections int) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, AltStatName: fmt.Sprint(connections), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}
}

func endpoints(name, address string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, NamedEndpoints: map[string]*endpointv3.Endpoint{address: {Hostname: address}}}
}

func listener(t *testing.T, name, routes string) *listenerv3.Listener {
	config := wrap(t, &hcmv3.HttpConnectionManager{StatPrefix: "x", RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: routes}}})
	return &listenerv3.Listener{Name: name, FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{
		{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config}}}}}}
}

func routes(name, path string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{Name: path}}}
}

// expect compares what a client sends with what it should.
func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("sends\n  %s, want\n  %s", got, want)
	}
}

func TestSubscriptionsFollowNames(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprint("delta=", delta), func(t *testing.T) {
			c := converse(t, delta)
			plain := func(sotw, incremental string) string {
				if delta {
					return incremental
				}
				return sotw
			}
			expect(t, c.print(c.client.Begin()), "CDS node=n")
			static := &clusterv3.Cluster{Name: "static"}
			_, sent := c.say(Cluster, nil, cluster("a", 1), static, cluster("b", 1))
			expect(t, sent, plain("EDS [a b]", "EDS +[a b]"))
			_, sent = c.say(Endpoint, nil, endpoints("a", "10.0.0.1"))
			expect(t, sent, plain("EDS [a b] version=v2 nonce=2", "EDS nonce=2"))
			_, sent = c.say(Endpoint, nil, endpoints("b", "10.0.0.2"))
			expect(t, sent, plain("EDS [a b] version=v3 nonce=3; CDS version=v1 nonce=1; LDS", "EDS nonce=3; CDS nonce=1; LDS"))
			r, sent := c.say(Listener, nil, listener(t, "l", "80"))
			expect(t, sent, plain("RDS [80]; LDS version=v4 nonce=4", "RDS +[80]; LDS nonce=4"))
			if r.Ready {
				t.Error("ready without routes")
			}
			r, sent = c.say(Route, nil, routes("80", "/change-12/"))
			expect(t, sent, plain("RDS [80] version=v5 nonce=5", "RDS nonce=5"))
			if !r.Ready || len(r.Marks) != 1 || r.Marks[0] != 12 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// warm is a conversation in which the client has clusters a and b, and all else.
func warm(t *testing.T, delta bool) *conversation {
	c := converse(t, delta)
	c.client.Begin()
	c.say(Cluster, nil, cluster("a", 1), cluster("b", 1))
	c.say(Endpoint, nil, endpoints("a", "10.0.0.1"), endpoints("b", "10.0.0.2"))
	c.say(Listener, nil, listener(t, "l", "80"))
	if r, _ := c.say(Route, nil, routes("80", "x")); !r.Ready || r.Useless != 0 {
		t.Fatalf("%+v", r)
	}
	return c
}

func TestChangedClusterWaitsForItsEndpoints(t *testing.T) {
	c := warm(t, false)
	r, sent := c.say(Cluster, nil, cluster("a", 2), cluster("b", 1))
	expect(t, sent, "EDS [a b] version=v2 nonce=2")
	if r.Useless != 0 {
		t.Error("a root repeats beside something new", r.Useless)
	}
	r, sent = c.say(Endpoint, nil, endpoints("a", "10.0.0.1"))
	expect(t, sent, "EDS [a b] version=v6 nonce=6; CDS version=v5 nonce=5")
	if r.Useless != 0 {
		t.Error("endpoints after their cluster are never useless")
	}
	d := warm(t, true)
	_, sent = d.say(Cluster, []string{"b"}, cluster("a", 2), cluster("c", 1))
	expect(t, sent, "EDS +[c] -[b]")
	_, sent = d.say(Endpoint, nil, endpoints("a", "10.0.0.1"), endpoints("c", "10.0.0.3"))
	expect(t, sent, "EDS nonce=6; CDS nonce=5")
}

func TestUselessPushes(t *testing.T) {
	for _, delta := range []bool{false, true} {
		c := warm(t, delta)
		if r, _ := c.say(Endpoint, nil, endpoints("a", "10.0.0.1"), endpoints("b", "198.18.101.107")); r.Useless != 1 || r.Resources != 2 || len(r.Marks) != 1 || r.Marks[0] != 163 {
			t.Errorf("delta=%v: %+v", delta, r)
		}
		if r, _ := c.say(Listener, nil, listener(t, "l", "80")); r.Useless != 1 || r.UselessBytes == 0 {
			t.Errorf("delta=%v: %+v", delta, r)
		}
		if r, _ := c.say(Route, nil, routes("80", "y")); r.Useless != 0 {
			t.Errorf("delta=%v: %+v", delta, r)
		}
	}
}

func TestRefusal(t *testing.T) {
	c := warm(t, false)
	c.client.Refuse(Route)
	r, sent := c.say(Route, nil, routes("80", "/change-1/"))
	expect(t, sent, "RDS [80] version=v4 nonce=5 error=refused by the load test")
	if !r.Refused || len(r.Marks) > 0 {
		t.Errorf("%+v", r)
	}
	if r, _ = c.say(Route, nil, routes("80", "x")); r.Refused || r.Useless != 0 {
		t.Errorf("the corrective response: %+v", r)
	}
}

func TestReconnectTellsWhatIsThere(t *testing.T) {
	c := warm(t, false)
	expect(t, c.print(c.client.Begin()), "CDS node=n version=v1; EDS [a b] version=v2; LDS version=v3; RDS [80] version=v4")
	d := warm(t, true)
	expect(t, d.print(d.client.Begin()), "CDS node=n has=map[a:1 b:1]; EDS +[a b] has=map[a:1 b:1]; LDS has=map[l:1]; RDS +[80] has=map[80:1]")
}

func TestMalformed(t *testing.T) {
	for _, b := range [][]byte{
		{1, 0, 0, 0, 0, 0},             // compressed
		{0, 0, 0, 0, 2, 0x12, 0x7f},    // longer than the message
		{0, 0, 0, 0, 1, 0x12},          // ends within a field
		{0, 0, 0, 0, 3, 0x12, 1, 0xff}, // a resource that is no message
	} {
		p := parser{table: NewTable(Marks{})}
		if _, _, err := p.feed(b); err == nil {
			t.Errorf("% x is taken", b)
		}
	}
}
