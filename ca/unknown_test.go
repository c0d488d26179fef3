package ca

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/quota"
)

// Calls of callers that are not known yet are bounded by address: beyond that they are refused, before anybody is asked
// who they are, and counted; who has become known does not count.
func TestUnknownCallersAreBounded(t *testing.T) {
	root := under(t, nil, "root", time.Hour)
	a := must[*Authority](t)(New(root.material(t, nil, root.pem)))
	s, conn := serveCA(t, ServiceOptions{Authority: func() *Authority { return a }})
	call := func() error {
		_, err := securityv1.NewIstioCertificateServiceClient(conn).CreateCertificate(as(t, "web"),
			&securityv1.IstioCertificateRequest{Csr: csr(t, ecKey(t), web().String())})
		return err
	}
	here := quota.Of(identity.Identity{}, nil) // as what comes through memory is known
	for range maxUnknown - 1 {
		s.unknown.Enter(here)
	}
	for range 3 {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	s.unknown.Enter(here)
	if err := call(); status.Code(err) != codes.ResourceExhausted || s.Outcomes()[TooMany] != 1 {
		t.Errorf("%v, counted %v", err, s.Outcomes())
	}
	s.unknown.Leave(here)
	if err := call(); err != nil {
		t.Error(err)
	}
}
