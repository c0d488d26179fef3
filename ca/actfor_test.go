package ca

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/identity"
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
