package ca

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// A caller that may act for somebody gets a certificate in that name; who may not is refused and counted, whatever it
// has written.
func TestActingForOthers(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	s, conn := serveCA(t, ServiceOptions{Authority: func() *Authority { return a },
		ActFor: func(caller identity.Peer, who identity.Identity) error {
			switch {
			case caller.Identity.ServiceAccount == "early":
				return ErrLater
			case caller.Identity.ServiceAccount == "agent" && who == web():
				return nil
			}
			return errors.New("no")
		}})
	client := securityv1.NewIstioCertificateServiceClient(conn)
	ask := func(caller, name string) ([]string, error) {
		r, err := client.CreateCertificate(as(t, caller), &securityv1.IstioCertificateRequest{
			Csr: csr(t, ecKey(t), "spiffe://cluster.local/ns/bank/sa/teller"), Metadata: &structpb.Struct{
				Fields: map[string]*structpb.Value{"ImpersonatedIdentity": structpb.NewStringValue(name)}}})
		return r.GetCertChain(), err
	}
	chain, err := ask("agent", web().String())
	if err != nil {
		t.Fatal(err)
	}
	if leaf := opens(t, chain, root.pem); leaf.URIs[0].String() != web().String() {
		t.Error("the name is", leaf.URIs)
	}
	const teller = "spiffe://cluster.local/ns/bank/sa/teller"
	for _, c := range []struct {
		name, caller, who string
		outcome           Outcome
		code              codes.Code
	}{
		{"of another node", "agent", teller, Denied, codes.PermissionDenied},
		{"no agent", "web", web().String(), Denied, codes.PermissionDenied},
		{"of another trust domain", "agent", "spiffe://evil/ns/shop/sa/web", Malformed, codes.InvalidArgument},
		{"no service account", "agent", "spiffe://cluster.local/web", Malformed, codes.InvalidArgument},
		{"more than one part", "agent", web().String() + "/../x", Malformed, codes.InvalidArgument},
		{"while it is not known", "early", web().String(), NotReady, codes.Unavailable},
	} {
		before := s.Outcomes()[c.outcome]
		if _, err := ask(c.caller, c.who); status.Code(err) != c.code || s.Outcomes()[c.outcome] != before+1 {
			t.Errorf("%s: %v, counted %v", c.name, err, s.Outcomes())
		}
	}
}

// The agents of all nodes have one identity. One that asks without end is refused; that of another node has the
// certificates of a hundred pods meanwhile, and one that does not prove which pod it is has the identity's own
// allowance.
func TestAgentsAreChargedOneByOne(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	now := time.Now()
	s, conn := serveCA(t, ServiceOptions{Authority: func() *Authority { return a },
		Rate: quota.NewRate(10, func() time.Time { return now }),
		Authenticate: func(ctx context.Context) (identity.Peer, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			pod := strings.Join(md.Get("who"), "")
			return identity.Peer{Pod: identity.Pod{Name: pod, UID: pod}, Identity: identity.Identity{
				TrustDomain: "cluster.local", Namespace: "istio-system", ServiceAccount: "ztunnel"}}, nil
		},
		ByPod:  func(who identity.Identity) bool { return who.ServiceAccount == "ztunnel" },
		ActFor: func(identity.Peer, identity.Identity) error { return nil },
	})
	client := securityv1.NewIstioCertificateServiceClient(conn)
	text := csr(t, ecKey(t), web().String())
	ask := func(agent string, pod int) codes.Code {
		meta, err := structpb.NewStruct(map[string]any{
			"ImpersonatedIdentity": fmt.Sprintf("spiffe://cluster.local/ns/shop/sa/pod-%d", pod)})
		must[*structpb.Struct](t)(meta, err)
		_, err = client.CreateCertificate(as(t, agent), &securityv1.IstioCertificateRequest{Csr: text, Metadata: meta})
		return status.Code(err)
	}
	const allowed, pods = 100, 100
	for i := range allowed + 50 {
		want := codes.OK
		if i >= allowed {
			want = codes.ResourceExhausted
		}
		if got := ask("greedy", i); got != want {
			t.Fatalf("call %d of the greedy agent: %s, want %s", i, got, want)
		}
	}
	for i := range pods {
		if got := ask("honest", i); got != codes.OK {
			t.Fatalf("call %d of the honest agent: %s", i, got)
		}
	}
	if got := ask("", 0); got != codes.OK {
		t.Errorf("one without a pod: %s", got)
	}
	if n := s.Outcomes(); n[Issued] != allowed+pods+1 || n[TooOften] != 50 {
		t.Errorf("%v", n)
	}
}
