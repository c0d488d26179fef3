package e2e_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcpb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/e2e/testnet"
)

// asker is a server that decides about requests: it lets pass those with a header "x-ask: allow", and connections of
// bytes while it is told to.
type asker struct {
	bytes atomic.Bool
	asked atomic.Int64
	path  atomic.Value // of the last request over HTTP
}

func askPod() pod { return pod{"ask", "shop", "10.244.6.1", "app: ask"} }

// serve answers over HTTP at port 8000 and over gRPC at port 9100.
func (a *asker) serve(t *testing.T, pod *testnet.Pod) {
	web, err := pod.Listen(":8000")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(a.overHTTP)}
	go func() { _ = server.Serve(web) }()
	t.Cleanup(func() { _ = server.Close() })
	calls, err := pod.Listen(":9100")
	if err != nil {
		t.Fatal(err)
	}
	rpc := grpc.NewServer()
	authpb.RegisterAuthorizationServer(rpc, a)
	go func() { _ = rpc.Serve(calls) }()
	t.Cleanup(rpc.Stop)
}

func (a *asker) overHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked.Add(1)
	a.path.Store(r.URL.Path)
	w.Header().Set("x-user", "bob")
	w.Header().Set("x-seen", r.Header.Get("x-fixed"))
	w.Header().Set("x-why", "it said "+r.Header.Get("x-ask"))
	if r.Header.Get("x-ask") != "allow" {
		w.WriteHeader(http.StatusForbidden)
	}
}

// Check decides over gRPC.
func (a *asker) Check(_ context.Context, r *authpb.CheckRequest) (*authpb.CheckResponse, error) {
	a.asked.Add(1)
	says, web := r.GetAttributes().GetRequest().GetHttp().GetHeaders()["x-ask"], r.GetAttributes().GetRequest().GetHttp()
	if web.GetMethod() == "" && a.bytes.Load() || says == "allow" {
		return &authpb.CheckResponse{Status: &rpcpb.Status{}, HttpResponse: &authpb.CheckResponse_OkResponse{
			OkResponse: &authpb.OkHttpResponse{Headers: []*corepb.HeaderValueOption{
				{Header: &corepb.HeaderValue{Key: "x-user", Value: "bob"}}}}}}, nil
	}
	return &authpb.CheckResponse{Status: &rpcpb.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authpb.CheckResponse_DeniedResponse{DeniedResponse: &authpb.DeniedHttpResponse{
			Status: &typepb.HttpStatus{Code: typepb.StatusCode_Forbidden}, Headers: []*corepb.HeaderValueOption{
				{Header: &corepb.HeaderValue{Key: "x-why", Value: "it said " + says}}}}}}, nil
}

const askProviders = `
extensionProviders:
- name: web
  envoyExtAuthzHttp:
    {service: ask.shop.svc.cluster.local, port: 8000, timeout: 5s, pathPrefix: /check,
     includeRequestHeadersInCheck: [x-ask], includeAdditionalHeadersInCheck: {x-fixed: here},
     headersToUpstreamOnAllow: [x-user], headersToDownstreamOnAllow: [x-seen], headersToDownstreamOnDeny: [x-why]}
- {name: grpc, envoyExtAuthzGrpc: {service: shop/ask.shop.svc.cluster.local, port: 9100, timeout: 5s}}
- {name: closed, envoyExtAuthzHttp: {service: ask.shop.svc.cluster.local, port: 8009, statusOnError: "503"}}
- {name: open, envoyExtAuthzHttp: {service: ask.shop.svc.cluster.local, port: 8009, failOpen: true}}
- {name: openGRPC, envoyExtAuthzGrpc: {service: ask.shop.svc.cluster.local, port: 8009, failOpen: true}}
- {name: nowhere, envoyExtAuthzHttp: {service: nowhere.shop.svc.cluster.local, port: 8000, failOpen: true}}
- {name: noport, envoyExtAuthzGrpc: {service: ask.shop.svc.cluster.local, port: 1, failOpen: true}}
`

// customPolicy asks a provider about paths below /ask and about port 9000.
func customPolicy(name, provider string) string {
	return fmt.Sprintf(`
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: %s, namespace: shop}
spec:
  selector: {matchLabels: {app: secure}}
  action: CUSTOM
  provider: {name: %s}
  rules: [{to: [{operation: {paths: ["/ask*"], ports: ["8080"]}}]}, {to: [{operation: {ports: ["9000"]}}]}]
`, name, provider)
}

// askRow is a request, as what a server says, and what becomes of it.
type askRow struct {
	path, says string
	want       int
	header     string // of the answer, "name: value"
}

// TestCustomAuthorization: policies of action CUSTOM ask real servers over HTTP and gRPC about what their rules match,
// about nothing else, and deny it where no server can be asked.
func TestCustomAuthorization(t *testing.T) {
	w := &world{t: t, network: testnet.New(t), secrets: parts.NewAuthority(t), objects: inDirectory(t)}
	ports := "{name: http, port: 8000}, {name: grpc, port: 9100}, {name: http-none, port: 8009}"
	w.objects.Apply(baseMesh() + securePod().yaml() + askPod().yaml() +
		service("shop/secure", secureVIP, "app: secure", "{name: http, port: 80, targetPort: 8080}, {name: tcp, port: 9000}") +
		slice("secure", "shop", "{name: http, port: 8080, protocol: TCP}, {name: tcp, port: 9000, protocol: TCP}",
			securePod()) +
		service("shop/ask", "10.96.1.6", "app: ask", ports) + slice("ask", "shop", ports, askPod()) +
		customPolicy("ask", "web") + policyYAML("denied", "DENY", `to: [{operation: {paths: [/ask/denied], ports: ["8080"]}}]`))
	sources := w.objects.Sources()
	sources.MeshConfig = askProviders
	w.pilotd = parts.StartPilotd(t, sources)
	server := &asker{}
	server.serve(t, w.network.Pod(t, askPod().ip))
	client, envoys := w.securePair(t, parts.Delta, map[string]string{"8080": "secure", "9000": "bytes"})
	web := client.Client()
	ask := func(r askRow) error {
		var headers []string
		if r.says != "" {
			headers = []string{"x-ask", r.says}
		}
		a, err := parts.Ask(web, "http://"+secureVIP+r.path, secureHost, headers...)
		name, value, _ := strings.Cut(r.header, ": ")
		if err != nil || a.Status != r.want || name != "" && a.Header.Get(name) != value {
			return fmt.Errorf("%+v: %d %v, %v", r, a.Status, a.Header, err)
		}
		return nil
	}
	answered := func(more ...askRow) []askRow {
		return append([]askRow{
			{"/ask", "allow", 200, "x-echo-header-x-user: bob"}, {"/ask", "deny", 403, "x-why: it said deny"},
			{"/ask", "", 403, ""}, {"/free", "", 200, ""}, {"/free", "deny", 200, ""}, {"/ask/more", "allow", 200, ""},
			{"/ask/more", "no", 403, ""}, {"/ask/denied", "allow", 403, ""}, {"/ask/denied", "deny", 403, ""},
		}, more...)
	}
	denied := func(status int) []askRow {
		return []askRow{{"/ask", "allow", status, ""}, {"/ask", "", status, ""}, {"/free", "", 200, ""},
			{"/ask/denied", "allow", status, ""}}
	}
	passes := []askRow{{"/ask", "", 200, ""}, {"/ask", "deny", 200, ""}, {"/free", "", 200, ""},
		{"/ask/denied", "allow", 403, ""}}
	for _, c := range []struct {
		provider, more string
		rows           []askRow
	}{
		{"web", "", answered(askRow{"/ask", "allow", 200, "x-seen: here"})},
		{"grpc", "", answered()},
		{"nowhere", "", denied(403)}, // although the provider would fail open
		{"open", "", passes},
		{"closed", "", denied(503)[:3]},
		{"openGRPC", "", passes},
		{"noport", "", denied(403)},
		{"web", "grpc", denied(403)},
		{"unknown", "", denied(403)},
		{"grpc", "grpc", answered()},
	} {
		w.objects.Apply(customPolicy("ask", c.provider))
		if c.more != "" {
			w.objects.Apply(customPolicy("more", c.more))
		}
		parts.Eventually(t, "provider "+c.provider+" with "+c.more, func() error {
			for _, r := range c.rows {
				if err := ask(r); err != nil {
					return err
				}
			}
			return nil
		})
		if c.more != "" {
			w.objects.Delete(customPolicy("more", c.more))
		}
	}
	outside := w.network.Pod(t, outsider().ip).Client()
	for _, let := range []bool{false, true, false} {
		server.bytes.Store(let)
		before := server.asked.Load()
		parts.Eventually(t, "a connection of bytes", func() error {
			a, err := parts.Ask(outside, "http://"+securePod().ip+":9000/", secureHost)
			answered := err == nil && a.Name == "bytes"
			if asked := server.asked.Load() > before; answered != let || !asked {
				return fmt.Errorf("answered: %v, asked: %v", answered, asked)
			}
			return nil
		})
	}
	if path, _ := server.path.Load().(string); !strings.HasPrefix(path, "/check/ask") {
		t.Errorf("the server was asked about path %v", server.path.Load())
	}
	for _, e := range envoys {
		if err := e.NothingRefused(); err != nil {
			t.Error(err)
		}
	}
}
