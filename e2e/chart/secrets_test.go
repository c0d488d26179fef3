package chart_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/xdstype"
)

// testSecrets asks for a certificate and roots, with the token of a service account that may not list Secrets, and then
// may. What is there already when pilotd is asked is sent, and so is what changes after.
func (i *installation) testSecrets(t *testing.T, service string) {
	authority := parts.NewAuthority(t)
	put := func() (chain []byte) {
		t.Helper()
		chain, key := authority.RSAHost(t, "shop.example")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"tls.crt": chain, "tls.key": key}}
		in := i.client.CoreV1().Secrets("shop")
		if _, err := in.Update(t.Context(), secret, metav1.UpdateOptions{}); err == nil {
			return chain
		}
		if _, err := in.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return chain
	}
	chain := put()
	if _, err := i.client.CoreV1().ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "clients"}, Data: map[string]string{"ca.crt": string(authority.Root)}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := i.asks(t, service, "web")
	if before.secrets["configmap://shop/clients"].GetValidationContext() == nil ||
		!slices.Contains(before.gone, "kubernetes://edge") {
		t.Errorf("without the right: %v", before)
	}
	i.mayListSecrets(t, "router")
	after := i.asks(t, service, "router")
	sent := func(a *answers) []byte {
		return a.secrets["kubernetes://edge"].GetTlsCertificate().GetCertificateChain().GetInlineBytes()
	}
	if !bytes.Equal(sent(after), chain) {
		t.Errorf("with the right: %v", after)
	}
	if chain = put(); !bytes.Equal(sent(after.next(t)), chain) {
		t.Errorf("after it has changed: %v", after)
	}
}

// mayListSecrets makes a service account of shop that may list Secrets there.
func (i *installation) mayListSecrets(t *testing.T, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	_, err := i.client.CoreV1().ServiceAccounts("shop").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta},
		metav1.CreateOptions{})
	if err == nil {
		_, err = i.client.RbacV1().Roles("shop").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
				Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = i.client.RbacV1().RoleBindings("shop").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: "shop"}}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answers are what a gateway has been sent.
type answers struct {
	stream  discoverypb.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	secrets map[string]*tlspb.Secret
	gone    []string
}

// asks opens a stream as a gateway of a service account, and returns the first answer.
func (i *installation) asks(t *testing.T, service, account string) *answers {
	t.Helper()
	conn := i.dial(t, service)
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization",
		"Bearer "+i.token("shop", account, "istio-ca")), aWhile)
	t.Cleanup(cancel)
	stream, err := discoverypb.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err == nil {
		err = stream.Send(&discoverypb.DeltaDiscoveryRequest{TypeUrl: xdstype.SecretURL,
			Node:                   &corepb.Node{Id: "router~10.0.0.1~" + account + ".shop~shop.svc.cluster.local"},
			ResourceNamesSubscribe: []string{"kubernetes://edge", "configmap://shop/clients"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	a := &answers{stream: stream, secrets: map[string]*tlspb.Secret{}}
	return a.next(t)
}

// next takes an answer, and acknowledges it.
func (a *answers) next(t *testing.T) *answers {
	t.Helper()
	resp, err := a.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	a.gone = resp.RemovedResources
	for _, r := range resp.Resources {
		s := &tlspb.Secret{}
		if err := r.Resource.UnmarshalTo(s); err != nil {
			t.Fatal(err)
		}
		a.secrets[r.Name] = s
	}
	ack := &discoverypb.DeltaDiscoveryRequest{TypeUrl: resp.TypeUrl, ResponseNonce: resp.Nonce}
	if err := a.stream.Send(ack); err != nil {
		t.Fatal(err)
	}
	return a
}
