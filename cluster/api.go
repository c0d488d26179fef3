package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/identity/authn"
)

// API is a client of an API server. Immutable; safe for concurrent use.
type API struct {
	core           coreclient.CoreV1Interface
	authentication authenticationclient.AuthenticationV1Interface
	authorization  authorizationclient.AuthorizationV1Interface
	metadata       metadata.Interface
	admission      admissionclient.AdmissionregistrationV1Interface
	events         eventsclient.EventsV1Interface
	dynamic        dynamic.Interface
	// Leases is for package leader.
	Leases coordinationclient.LeasesGetter
}

// New returns a client for the API server of cfg. It ignores cfg's rate limit: its callers are bounded themselves, and
// must not wait behind those that read configuration.
func New(cfg *rest.Config) (*API, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.RateLimiter = -1, nil
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	a := &API{}
	if a.core, err = coreclient.NewForConfigAndClient(cfg, http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	if a.authentication, err = authenticationclient.NewForConfigAndClient(cfg, http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	if a.admission, err = admissionclient.NewForConfigAndClient(cfg, http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	if a.authorization, err = authorizationclient.NewForConfigAndClient(cfg, http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	if a.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	if a.events, err = eventsclient.NewForConfigAndClient(cfg, http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	if a.dynamic, err = dynamic.NewForConfigAndClient(dynamic.ConfigFor(cfg), http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	if a.Leases, err = coordinationclient.NewForConfigAndClient(cfg, http); err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	return a, nil
}

// Review asks the API server for the identity behind a token. It implements authn.Reviewer.
func (a *API) Review(ctx context.Context, token string, audiences []string) (authn.Review, error) {
	r, err := a.authentication.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}, metav1.CreateOptions{})
	if err != nil {
		return authn.Review{}, err
	}
	// A server that does not support audiences returns none; it has checked the token for its own audience only.
	meant := slices.ContainsFunc(r.Status.Audiences, func(a string) bool { return slices.Contains(audiences, a) })
	said := func(key string) string { return strings.Join(r.Status.User.Extra[key], " ") }
	return authn.Review{Good: r.Status.Authenticated && meant, User: r.Status.User.Username,
		Pod: identity.Pod{Name: said(podNameKey), UID: said(podUIDKey)}}, nil
}

// Keys of the extra fields in a server's answer about a token.
const (
	podNameKey = "authentication.kubernetes.io/pod-name"
	podUIDKey  = "authentication.kubernetes.io/pod-uid"
)
