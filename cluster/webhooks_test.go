package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/e2e/parts"
)

// testWebhooks has two revisions' webhooks on a real API server, of which one's are kept.
func testWebhooks(t *testing.T, a *API) {
	roots := func() string {
		m, err := ca.SelfSigned(ca.Root{Organization: "mesh", Life: time.Hour}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return string(m.Roots)
	}
	first, second, somebodys := roots(), roots(), roots()
	makeWebhooks(t, a, "mine", "default", []byte(somebodys))
	makeWebhooks(t, a, "other", "canary", []byte(somebodys))
	var text atomic.Value
	text.Store("")
	changed := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() {
		a.KeepWebhooks(ctx, Webhooks{Roots: func() string { return text.Load().(string) }, Changed: changed,
			Log: slog.New(slog.DiscardHandler)})
	})
	have := func(want map[string]string) {
		t.Helper()
		parts.Eventually(t, "the webhooks have their roots", func() error {
			got := bundles(t, a)
			for _, k := range slices.Sorted(maps.Keys(want)) {
				if got[k] != want[k] {
					return fmt.Errorf("%s has %.100q, want %.100q", k, got[k], want[k])
				}
			}
			return nil
		})
	}
	other := map[string]string{"other rev.namespace.sidecar-injector.istio.io": "",
		"other scanner.example.com": somebodys, "other rev.validation.istio.io": ""}
	with := func(roots string) map[string]string {
		out := maps.Clone(other)
		out["mine rev.namespace.sidecar-injector.istio.io"], out["mine rev.validation.istio.io"] = roots, roots
		out["mine scanner.example.com"] = somebodys
		return out
	}
	have(with("")) // while no roots are known
	for _, roots := range []string{first, second} {
		text.Store(roots)
		changed <- struct{}{}
		have(with(roots))
	}
	mine, err := a.admission.MutatingWebhookConfigurations().Get(t.Context(), "mine", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(mine.Webhooks)
	for i := range mine.Webhooks {
		mine.Webhooks[i].ClientConfig.CABundle = []byte(somebodys)
	}
	edit := a.admission.MutatingWebhookConfigurations().Update
	if _, err := edit(t.Context(), mine, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	have(with(second)) // somebody has edited them
	makeWebhooks(t, a, "late", "default", []byte(somebodys))
	have(map[string]string{"late rev.namespace.sidecar-injector.istio.io": second})
}

// makeWebhooks makes both kinds of configurations, each with a webhook of the control plane.
func makeWebhooks(t *testing.T, a *API, name, revision string, bundle []byte) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"istio.io/rev": revision}}
	client := func(bundle []byte) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{CABundle: bundle,
			Service: &admissionv1.ServiceReference{Namespace: "istio-system", Name: "istiod"}}
	}
	none, versions := admissionv1.SideEffectClassNone, []string{"v1"}
	m := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{
		{Name: "scanner.example.com", ClientConfig: client(bundle), SideEffects: &none, AdmissionReviewVersions: versions},
		{Name: "rev.namespace.sidecar-injector.istio.io", ClientConfig: client(nil), SideEffects: &none,
			AdmissionReviewVersions: versions},
	}}
	v := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{
		{Name: "rev.validation.istio.io", ClientConfig: client(nil), SideEffects: &none, AdmissionReviewVersions: versions},
	}}
	if _, err := a.admission.MutatingWebhookConfigurations().Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.admission.ValidatingWebhookConfigurations().Create(t.Context(), v, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// bundles returns the caBundles of all webhooks, by the names of configuration and webhook.
func bundles(t *testing.T, a *API) map[string]string {
	t.Helper()
	out := map[string]string{}
	m, err := a.admission.MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Items {
		for _, h := range c.Webhooks {
			out[c.Name+" "+h.Name] = string(h.ClientConfig.CABundle)
		}
	}
	v, err := a.admission.ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Items {
		for _, h := range c.Webhooks {
			out[c.Name+" "+h.Name] = string(h.ClientConfig.CABundle)
		}
	}
	return out
}
