package sidecar

import (
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotd/pilotd/transcript"
	"github.com/pilotd/pilotd/xdstype"
)

// TestTranscripts runs the files of testdata: each is a comment, what happens to a Client, and what it says to that.
//
//	client sidecar|gateway|proxyless [delta] [LISTENER …]   who it is; the listeners that a proxyless one asks for
//	begin                             a new stream
//	CDS NAME[:static][=TEXT] …        a response; clusters are found by EDS unless they are static
//	EDS NAME=ADDRESS …
//	LDS NAME=ROUTES …                 listeners, each with the name of its routes
//	RDS NAME=TEXT …                   route configurations; of proxyless clients TEXT is a cluster
//	… -NAME                           a name that is removed, of the incremental protocol
//	refuse TYPE                       the next response of a type is refused
func TestTranscripts(t *testing.T) {
	transcript.Each(t, "testdata/*.txtar", func(t *testing.T, a *transcript.File) {
		c := &conversation{t: t}
		for line := range strings.Lines(string(a.Files[0].Data)) {
			c.run(strings.TrimSpace(line))
		}
		got := c.out.String()
		if flag.Lookup("update").Value.String() == "true" {
			a.Files = []txtar.File{a.Files[0], {Name: "says", Data: []byte(got)}}
			a.Write(t)
			return
		}
		if len(a.Files) < 2 || string(a.Files[1].Data) != got {
			t.Errorf("got\n%s", got)
		}
	})
}

// conversation is a client with a server that the test plays.
type conversation struct {
	t      *testing.T
	client *Client
	parser parser
	nonce  int
	out    strings.Builder
}

func (c *conversation) run(line string) {
	c.t.Helper()
	fmt.Fprintln(&c.out, ">", line)
	verb, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	switch verb {
	case "client":
		c.become(words)
	case "begin":
		c.parser = parser{table: c.client.table, form: c.client.form()}
		c.print(c.client.Begin())
	case "refuse":
		c.client.Refuse(c.typeNamed(words[0]))
	default:
		c.respond(c.typeNamed(verb), words)
	}
}

func (c *conversation) become(words []string) {
	b, err := proto.Marshal(node("n"))
	must(c.t, err)
	s := Spec{Node: b}
	for k := range Kind(Kinds) {
		if k.String() == words[0] {
			s.Kind = k
		}
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "delta" {
		s.Delta, words = true, words[1:]
	}
	s.Listeners = words
	c.client = NewClient(NewTable(Marks{Endpoint: "198.18.", Route: "/change-"}), s)
}

func (c *conversation) typeNamed(name string) xdstype.Type {
	for of := range xdstype.Type(xdstype.NumStandard) {
		if of.String() == name {
			return of
		}
	}
	c.t.Fatalf("%q is no type", name)
	return 0
}

// respond gives the client a response, and writes down what it says of it and sends.
func (c *conversation) respond(of xdstype.Type, words []string) {
	var resources []proto.Message
	var removed []string
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "-"); ok {
			removed = append(removed, name)
			continue
		}
		name, text, _ := strings.Cut(w, "=")
		resources = append(resources, c.resource(of, name, text))
	}
	c.nonce++
	receipt, requests := c.client.Take(c.read(message(c.t, of, c.client.spec.Delta, answer{c.nonce, removed, resources})))
	c.parser.reset()
	c.print(requests)
	for _, said := range []struct {
		what string
		is   any
		not  any
	}{{"ready", receipt.Ready, false}, {"refused", receipt.Refused, false}, {"useless", receipt.Useless, 0},
		{"marks", fmt.Sprint(receipt.Marks), "[]"},
		{"lost", fmt.Sprint(receipt.Lost), "[]"}} {
		if said.is != said.not {
			fmt.Fprintf(&c.out, "  (%s %v)\n", said.what, said.is)
		}
	}
}

// read lets the parser read a message byte by byte.
func (c *conversation) read(b []byte) *Response {
	c.t.Helper()
	for i := range b {
		rest, complete, err := c.parser.feed(b[i : i+1])
		must(c.t, err)
		if len(rest) > 0 || complete != (i == len(b)-1) {
			c.t.Fatal("complete after", i+1, "of", len(b))
		}
	}
	return &c.parser.response
}

func (c *conversation) resource(of xdstype.Type, name, text string) proto.Message {
	switch of {
	case xdstype.Cluster:
		name, static := strings.CutSuffix(name, ":static")
		if static {
			return &clusterv3.Cluster{Name: name, AltStatName: text}
		}
		return cluster(name, text)
	case xdstype.Endpoint:
		return endpoints(name, text)
	case xdstype.Listener:
		return listener(c.t, name, text, c.client.spec.Kind == Proxyless)
	}
	return routes(name, text)
}

// answer is what a response says.
type answer struct {
	nonce     int
	removed   []string
	resources []proto.Message
}

// message returns a response as gRPC sends it.
func message(t testing.TB, of xdstype.Type, delta bool, a answer) []byte {
	t.Helper()
	var m proto.Message
	if delta {
		d := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: of.URL(), Nonce: fmt.Sprint(a.nonce), RemovedResources: a.removed}
		for _, r := range a.resources {
			d.Resources = append(d.Resources, &discoveryv3.Resource{Name: "ignored", Version: "1",
				Resource: wrap(t, r)})
		}
		m = d
	} else {
		s := &discoveryv3.DiscoveryResponse{TypeUrl: of.URL(), Nonce: fmt.Sprint(a.nonce),
			VersionInfo: fmt.Sprint("v", a.nonce), Canary: true}
		for _, r := range a.resources {
			s.Resources = append(s.Resources, wrap(t, r))
		}
		m = s
	}
	b, err := proto.Marshal(m)
	must(t, err)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// print decodes requests with the generated code.
func (c *conversation) print(requests []Request) {
	for i := range requests {
		head, names, tail := requests[i].Parts()
		b := slices.Concat(head, names, tail)
		line := " "
		add := func(what string, v any) {
			if s := fmt.Sprint(v); s != "" && s != "[]" && s != "map[]" {
				line += " " + what + s
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
		fmt.Fprintln(&c.out, line)
	}
}

func short(url string) string {
	if t, ok := typeOf([]byte(url)); ok {
		return t.String()
	}
	return url
}

func wrap(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	must(t, err)
	return a
}

func cluster(name, text string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, AltStatName: text,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}
}

func endpoints(name, address string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name,
		NamedEndpoints: map[string]*endpointv3.Endpoint{address: {Hostname: address}}}
}

func listener(t testing.TB, name, routes string, api bool) *listenerv3.Listener {
	config := wrap(t, &hcmv3.HttpConnectionManager{StatPrefix: "x",
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: routes}}})
	if api {
		return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: config}}
	}
	return &listenerv3.Listener{Name: name, FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{
		{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config}}}}}}
}

// routes lead to a cluster, and say it in the name of their host too.
func routes(name, text string) *routev3.RouteConfiguration {
	action := &routev3.Route_Route{
		Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: text}},
	}
	return &routev3.RouteConfiguration{Name: name,
		VirtualHosts: []*routev3.VirtualHost{{Name: text, Routes: []*routev3.Route{{Action: action}}}}}
}

func TestMalformed(t *testing.T) {
	for _, b := range [][]byte{
		{1, 0, 0, 0, 0, 0},             // compressed
		{0, 0, 0, 0, 2, 0x12, 0x7f},    // longer than the message
		{0, 0, 0, 0, 1, 0x12},          // ends within a field
		{0, 0, 0, 0, 3, 0x12, 1, 0xff}, // a resource that is no message
		append([]byte{0, 0, 0, 0, 30}, strings.Repeat("\xff", 30)...), // a key without an end
	} {
		p := parser{table: NewTable(Marks{})}
		if _, _, err := p.feed(b); err == nil {
			t.Errorf("% x is taken", b)
		}
	}
}
