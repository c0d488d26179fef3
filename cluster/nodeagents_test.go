package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/identity"
)

// An agent may act for who has a pod on its own node: not for those on others, nor for those that have come to their
// end; and it must be one, by the token of a pod that runs.
func testNodeAgents(t *testing.T, a *API) {
	makeNamespace(t, a, "nodes")
	pods := a.core.Pods("nodes")
	run := func(name, account, node string) *corev1.Pod {
		t.Helper()
		p, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: account, TerminationGracePeriodSeconds: new(int64),
				Containers: []corev1.Container{{Name: "app", Image: "app"}}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	agentPod := run("agent-1", "agent", "n1")
	run("near", "near", "n1")
	run("far", "far", "n2")
	run("waiting", "waiting", "")
	over := run("over", "over", "n1")
	over.Status.Phase = corev1.PodSucceeded
	if _, err := pods.UpdateStatus(t.Context(), over, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	n := NewNodeAgents(a, []Account{{"nodes", "agent"}, {"nodes", "later"}}, slog.New(slog.DiscardHandler))
	agent := boundToken(t, a, agentPod)
	service := func(name string) identity.Identity {
		return identity.Identity{TrustDomain: "cluster.local", Namespace: "nodes", ServiceAccount: name}
	}
	if err := n.MayActFor(agent, service("near")); !errors.Is(err, ca.ErrLater) {
		t.Errorf("before pods are known: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { n.Run(ctx) })
	defer all.Wait()
	defer cancel()
	parts.Eventually(t, "an agent acts for a pod of its node", func() error { return n.MayActFor(agent, service("near")) })

	unbound, other, reused, elsewhere := agent, agent, agent, agent
	unbound.Pod, other.Identity = identity.Pod{}, service("near")
	reused.Pod.UID = string(types.UID("0"))
	elsewhere.Identity.Namespace = "shop"
	for name, c := range map[string]struct {
		agent identity.Peer
		who   string
	}{
		"a pod of another node":          {agent, "far"},
		"a pod of no node yet":           {agent, "waiting"},
		"a pod that has ended":           {agent, "over"},
		"nobody":                         {agent, "none"},
		"a certificate, or a free token": {unbound, "near"},
		"one that is no agent":           {other, "near"},
		"a pod that had the name before": {reused, "near"},
		"an account of another space":    {elsewhere, "near"},
	} {
		if err := n.MayActFor(c.agent, service(c.who)); err == nil || errors.Is(err, ca.ErrLater) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A pod that comes later counts, one that is gone does not; nor does an agent that is gone.
	run("late", "late", "n1")
	parts.Eventually(t, "a pod that comes later counts", func() error { return n.MayActFor(agent, service("late")) })
	gone := func(pod, who string) {
		t.Helper()
		if err := pods.Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		parts.Eventually(t, pod+" is gone", func() error {
			if err := n.MayActFor(agent, service(who)); err == nil {
				return errors.New("it is acted for")
			}
			return nil
		})
	}
	gone("near", "near")
	gone("agent-1", "late")
}

// boundToken returns who the bearer of a token of a pod is, as the server says.
func boundToken(t *testing.T, a *API, p *corev1.Pod) identity.Peer {
	t.Helper()
	account := p.Spec.ServiceAccountName
	accounts := a.core.ServiceAccounts(p.Namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"istio-ca"},
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Review(t.Context(), made.Status.Token, []string{"istio-ca"})
	want := identity.Pod{Name: p.Name, UID: string(p.UID)}
	user := fmt.Sprintf("system:serviceaccount:%s:%s", p.Namespace, account)
	if err != nil || !r.Good || r.Pod != want || r.User != user {
		t.Fatalf("%+v, %v", r, err)
	}
	return identity.Peer{Pod: r.Pod, Identity: identity.Identity{TrustDomain: "cluster.local", Namespace: p.Namespace,
		ServiceAccount: account}}
}
