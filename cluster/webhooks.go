package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

const (
	// revisionLabel says which control plane a webhook configuration belongs to.
	revisionLabel = "istio.io/rev"
	// Webhooks of these names, which Istio's charts give them, are pilotd's to keep; others of the same configuration are
	// somebody else's.
	injectorSuffix  = "sidecar-injector.istio.io"
	validatorSuffix = "validation.istio.io"
	// bundlePause is how long it is waited between two writings, in case somebody else keeps writing another bundle.
	bundlePause = time.Second
)

// Webhooks says which webhook configurations are kept right.
type Webhooks struct {
	// Revision is the control plane's; "default" when empty. Configurations with label istio.io/rev of that value are its.
	Revision string
	// Roots are, in PEM, what API servers are to check pilotd's certificate with; empty while they are not known.
	Roots func() string
	// Changed is sent to when Roots has changed.
	Changed <-chan struct{}
	// Log is the logger.
	Log *slog.Logger
}

// bundleWriter writes roots into webhook configurations.
type bundleWriter struct {
	// Immutable.
	api                  *API
	o                    Webhooks
	mutating, validating cache.SharedIndexInformer
	wake                 chan struct{}
}

// KeepWebhooks keeps the caBundle of the webhooks of a revision, in MutatingWebhookConfigurations and
// ValidatingWebhookConfigurations, until ctx ends. It is for the leader. It makes and deletes none, and changes nothing
// else of them.
func (a *API) KeepWebhooks(ctx context.Context, o Webhooks) {
	if o.Revision == "" {
		o.Revision = "default"
	}
	w := &bundleWriter{api: a, o: o, wake: make(chan struct{}, 1)}
	w.mutating = w.informer("mutatingwebhookconfigurations", &admissionv1.MutatingWebhookConfiguration{})
	w.validating = w.informer("validatingwebhookconfigurations", &admissionv1.ValidatingWebhookConfiguration{})
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { w.mutating.RunWithContext(ctx) })
	all.Go(func() { w.validating.RunWithContext(ctx) })
	// Either is taken care of while the other cannot be read.
	told := ""
	for ctx.Err() == nil {
		again := (<-chan time.Time)(nil)
		wrote, err := w.write(ctx)
		if err != nil {
			if text := err.Error(); text != told && ctx.Err() == nil {
				told = text
				o.Log.Error("the caBundle of webhooks cannot be written", "error", err)
			}
			again = time.After(retry)
		} else {
			told = ""
		}
		if wrote {
			sleep(ctx, bundlePause)
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-o.Changed:
		case <-again:
		}
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (w *bundleWriter) informer(resource string, of runtime.Object) cache.SharedIndexInformer {
	i := cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(w.api.admission.RESTClient(), resource, "",
		func(o *metav1.ListOptions) { o.LabelSelector = revisionLabel + "=" + w.o.Revision }), of, 0, nil)
	wake := func() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	// Fails only when it runs.
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { wake() },
		UpdateFunc: func(any, any) { wake() }})
	return i
}

// write makes all webhooks have the roots, and reports whether any had to be written.
func (w *bundleWriter) write(ctx context.Context) (wrote bool, err error) {
	roots := []byte(w.o.Roots())
	if len(roots) == 0 {
		return false, nil
	}
	done := func(name string, patch []byte, of func(context.Context, string, []byte) error) {
		if patch == nil {
			return
		}
		wrote = true
		switch failed := of(ctx, name, patch); {
		case failed == nil:
			w.o.Log.Info("the caBundle of a webhook configuration was written", "name", name)
		case !apierrors.IsNotFound(failed):
			err = errors.Join(err, fmt.Errorf("%s: %w", name, failed))
		}
	}
	for _, o := range w.mutating.GetStore().List() {
		c := o.(*admissionv1.MutatingWebhookConfiguration)
		p := newBundlePatch(c.ResourceVersion)
		for i, h := range c.Webhooks {
			p.add(entry{i, h.Name, h.ClientConfig.CABundle}, injectorSuffix, roots)
		}
		done(c.Name, p.text(), func(ctx context.Context, name string, patch []byte) error {
			_, err := w.api.admission.MutatingWebhookConfigurations().Patch(ctx, name, types.JSONPatchType, patch,
				metav1.PatchOptions{})
			return err
		})
	}
	for _, o := range w.validating.GetStore().List() {
		c := o.(*admissionv1.ValidatingWebhookConfiguration)
		p := newBundlePatch(c.ResourceVersion)
		for i, h := range c.Webhooks {
			p.add(entry{i, h.Name, h.ClientConfig.CABundle}, validatorSuffix, roots)
		}
		done(c.Name, p.text(), func(ctx context.Context, name string, patch []byte) error {
			_, err := w.api.admission.ValidatingWebhookConfigurations().Patch(ctx, name, types.JSONPatchType, patch,
				metav1.PatchOptions{})
			return err
		})
	}
	return wrote, err
}

// bundlePatch is a JSON patch of one configuration. It applies to the version alone that it was made for, so that it
// never writes into another webhook than the one that was looked at, and leaves fields that nobody here knows.
type bundlePatch struct {
	operations []patchOperation
	needed     bool
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func newBundlePatch(version string) *bundlePatch {
	return &bundlePatch{operations: []patchOperation{{"test", "/metadata/resourceVersion", version}}}
}

// entry is one webhook of a configuration: where it stands, its name and its bundle.
type entry struct {
	at     int
	name   string
	bundle []byte
}

// add gives the webhook the roots if its name ends in suffix and it has others.
func (p *bundlePatch) add(e entry, suffix string, roots []byte) {
	if !strings.HasSuffix(e.name, suffix) || bytes.Equal(e.bundle, roots) {
		return
	}
	p.needed = true
	p.operations = append(p.operations,
		patchOperation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", e.at), roots})
}

// text returns the patch; nil if nothing is to change.
func (p *bundlePatch) text() []byte {
	if !p.needed {
		return nil
	}
	text, err := json.Marshal(p.operations)
	if err != nil {
		panic(err) // strings and bytes alone
	}
	return text
}
