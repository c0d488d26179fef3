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
	// revisionLabel is the label that says which control plane a webhook configuration belongs to.
	revisionLabel = "istio.io/rev"
	// pilotd writes only webhooks whose names end like this, as those of Istio's charts do. Other webhooks of the same
	// configuration belong to somebody else.
	injectorSuffix  = "sidecar-injector.istio.io"
	validatorSuffix = "validation.istio.io"
	// bundlePause is the least time between two writes, in case somebody else keeps writing another bundle.
	bundlePause = time.Second
)

// Webhooks are the settings of KeepWebhooks.
type Webhooks struct {
	// Revision is the control plane's revision; empty means "default". The configurations with this value in the label
	// istio.io/rev belong to it.
	Revision string
	// Roots returns, in PEM, the roots with which API servers verify pilotd's certificate; empty while they are not
	// known.
	Roots func() string
	// Changed receives a value when Roots has changed.
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

// KeepWebhooks writes the roots into the caBundle of the webhooks of a revision, in MutatingWebhookConfigurations and
// ValidatingWebhookConfigurations, and keeps them up to date until ctx ends. Only the leader calls it. It creates and
// deletes no configuration, and changes no other field.
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
	// Each kind is handled even if the other cannot be read.
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
	// This fails only while the informer runs.
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { wake() },
		UpdateFunc: func(any, any) { wake() }})
	return i
}

// write writes the roots into all webhooks that lack them, and reports whether there were any.
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

// bundlePatch is a JSON patch of one configuration. It applies only to the version that it was made for, so that
// positions of webhooks cannot have shifted, and it leaves unknown fields as they are.
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

// entry is one webhook of a configuration: its position, its name and its bundle.
type entry struct {
	at     int
	name   string
	bundle []byte
}

// add adds the roots to the patch if the webhook's name ends in suffix and its bundle differs.
func (p *bundlePatch) add(e entry, suffix string, roots []byte) {
	if !strings.HasSuffix(e.name, suffix) || bytes.Equal(e.bundle, roots) {
		return
	}
	p.needed = true
	p.operations = append(p.operations,
		patchOperation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", e.at), roots})
}

// text returns the patch as JSON, or nil if there is nothing to change.
func (p *bundlePatch) text() []byte {
	if !p.needed {
		return nil
	}
	text, err := json.Marshal(p.operations)
	if err != nil {
		panic(err) // it consists of strings and bytes, which always encode
	}
	return text
}
