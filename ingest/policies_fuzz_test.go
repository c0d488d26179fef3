package ingest

import (
	"encoding/json"
	"fmt"
	"testing"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbacpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/gen"
	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// FuzzPolicies: whatever the spec of a policy says, its object is refused with a field, or what becomes of it is valid
// for Envoy and no larger than a bound; and an AuthorizationPolicy that is refused lets nothing pass.
func FuzzPolicies(f *testing.F) {
	const authorization, tokens, peers = 0, 1, 2
	for kind, specs := range map[byte][]string{
		authorization: {
			`{}`, `{"rules":[{}]}`, `{"rules":[null]}`, `{"selector":{"matchLabels":{"a":"*"}},"action":"DENY","rules":[{}]}`,
			`{"action":"DENY","rules":[{"from":[{"source":{"principals":["*foo*","a/b"],"notNamespaces":["*",".+("]}}]}]}`,
			`{"action":"CUSTOM","provider":{"name":"x"},"rules":[{"to":[{"operation":{"paths":["/{*}/{**}","*"]}}]}]}`,
			`{"rules":[{"to":[{"operation":{"ports":["0","65536"],"hosts":["*:*"],"methods":["get"]}}]}]}`,
			`{"rules":[{"from":[{"source":{"ipBlocks":["::/0","10.1.2.3/8"],"remoteIpBlocks":["::ffff:1.2.3.4"]}}]}]}`,
			`{"rules":[{"when":[{"key":"request.headers[:path]","values":["*"]},{"key":"request.auth.claims[a][b]"}]}]}`,
			`{"rules":[{"when":[{"key":"experimental.envoy.filters.a[b][c]","notValues":["[x]","*"]}]}],"action":"AUDIT"}`,
		},
		tokens: {
			`{"jwtRules":[{"issuer":"https://a","jwksUri":"http://b/c","fromHeaders":[{"name":"x","prefix":"y "}]}]}`,
			`{"jwtRules":[{"issuer":"a","jwks":"{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAEC\"}]}","outputPayloadToHeader":"x"}]}`,
			`{"jwtRules":[{"issuer":"a","fromParams":["p"],"fromCookies":["c"],"outputClaimToHeaders":[{"header":"h"}]},null]}`,
		},
		peers: {
			`{"selector":{"matchLabels":{"a":"b"}},"mtls":{"mode":"STRICT"},"portLevelMtls":{"80":{"mode":"DISABLE"},"0":{}}}`,
			`{"mtls":{"mode":9},"portLevelMtls":{"4294967295":null}}`,
		},
	} {
		for _, spec := range specs {
			f.Add(kind, spec)
		}
	}
	kinds := []string{"AuthorizationPolicy", "RequestAuthentication", "PeerAuthentication"}
	f.Fuzz(func(t *testing.T, kind byte, spec string) {
		name := kinds[int(kind)%len(kinds)]
		k := kindNamed(t, name)
		o := k.New()
		text := fmt.Sprintf(`{"kind":%q,"metadata":{"name":"x","namespace":"a"},"spec":%s}`, name, spec)
		if len(spec) > 1<<14 || json.Unmarshal([]byte(text), o) != nil {
			return // A source says so: file.FuzzParse.
		}
		keeper := newKeeper()
		s := NewStore(keeper, quiet(t), "kube")
		s.Synced("kube")
		key := value.ObjectKey{Kind: k.Name, Namespace: "a", Name: "x"}
		s.Apply([]Event{{Source: "kube", Key: key, Object: o}})
		refused := len(s.Rejections()) > 0
		for _, r := range s.Rejections() {
			if r.Reason == "" || r.Field == "" {
				t.Errorf("refused without a word: %+v", r)
			}
		}
		access := gen.AccessKey{Settings: &value.AccessSettings{TrustDomains: []string{"cluster.local", "old"}}}
		mode := value.Permissive
		switch v := keeper.state.objects[key].(type) {
		case *value.AuthorizationPolicy:
			access.Policies.Authorization = value.SequenceOf([]*value.AuthorizationPolicy{v})
			if v.Action == value.CustomAction {
				access.Policies.Asked = value.Asked{Problem: "there is none"}
			}
		case *value.RequestAuthentication:
			access.Policies.Tokens = value.SequenceOf([]*value.RequestAuthentication{v})
		case *value.PeerAuthentication:
			mode = value.NewPeerPolicies(nil, []*value.PeerAuthentication{v}).Of(v.Labels).At(80)
		}
		mesh := istio.Mesh(&meshconfig.MeshConfig{}, "cluster.local", "")
		for _, protocol := range []value.Protocol{value.HTTP, value.TCP, value.Auto} {
			in := gen.InboundChainsKey{Mesh: mesh.HTTP, Peers: mesh.Peers, Bind: "0.0.0.0", Target: 80, Mode: mode,
				Protocol: protocol, Access: access}
			b, _ := gen.EncodeInboundChains(in)
			if most := 1<<16 + 512*len(spec); len(b) == 0 || len(b) > most {
				t.Errorf("%d bytes, at most %d", len(b), most)
			}
			for _, chain := range gen.InboundChains(in) {
				if err := chain.ValidateAll(); err != nil {
					t.Error(err)
				}
				if closed, rules := validRules(t, chain); rules > 0 && refused && !closed {
					t.Errorf("refused, and lets something pass: %v", chain)
				} else if is, ok := keeper.state.objects[key].(*value.AuthorizationPolicy); ok && refused && rules == 0 {
					t.Errorf("refused, and %v has no rules", is)
				}
			}
		}
	})
}

// validRules checks what the filters of a chain are configured with. It tells how many of them have rules, and whether
// one of these lets nothing pass.
func validRules(t *testing.T, chain *listenerpb.FilterChain) (closed bool, rules int) {
	look := func(r *rbacpb.RBAC) {
		if r == nil {
			return
		}
		if rules++; r.GetAction() == rbacpb.RBAC_DENY {
			for _, p := range r.GetPolicies() {
				closed = closed || p.GetPermissions()[0].GetAndRules().GetRules()[0].GetAny() &&
					p.GetPrincipals()[0].GetAndIds().GetIds()[0].GetAny()
			}
			return
		}
		open := false
		for _, p := range r.GetPolicies() {
			open = open || p.GetPermissions()[0].GetNotRule() == nil
		}
		closed = closed || !open && r.GetAction() == rbacpb.RBAC_ALLOW
	}
	for _, f := range chain.GetFilters() {
		web, bytes := &hcmpb.HttpConnectionManager{}, &tcprbacpb.RBAC{}
		switch c := f.GetTypedConfig(); {
		case c.MessageIs(bytes):
			if err := c.UnmarshalTo(bytes); err != nil || bytes.ValidateAll() != nil {
				t.Errorf("%v %v", err, bytes.ValidateAll())
			}
			look(bytes.GetRules())
		case c.MessageIs(web):
			if err := c.UnmarshalTo(web); err != nil || web.ValidateAll() != nil {
				t.Errorf("%v %v", err, web.ValidateAll())
			}
		}
		for _, h := range web.GetHttpFilters() {
			m, err := h.GetTypedConfig().UnmarshalNew()
			if err != nil {
				t.Error(err)
				continue
			}
			if v, ok := m.(interface{ ValidateAll() error }); ok {
				if err := v.ValidateAll(); err != nil {
					t.Error(err)
				}
			}
			if r, ok := m.(*httprbacpb.RBAC); ok {
				look(r.GetRules())
			}
		}
	}
	return closed, rules
}
