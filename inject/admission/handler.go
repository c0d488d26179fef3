// Package admission answers the API server's questions about pods: an AdmissionReview comes in, a JSON patch that
// injects the pod goes out. Its Reviews are for other webhooks too.
//
// Whoever reaches the port may ask, and learns what injection would make of a pod of their own; nothing is stored and
// nobody else is asked. What all requests may cost is bounded: the size of each, and how many are read and answered at
// once, large ones apart from small ones.
package admission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/inject"
)

// Options are what a Handler is made from.
type Options struct {
	// Injector is the injector of the settings that hold now; it answers nil while there are none. It must not block.
	Injector func() *inject.Injector
	// NamespaceAnnotations are a namespace's annotations, which OpenShift uses. It may be nil, and must not block.
	NamespaceAnnotations func(namespace string) map[string]string
	// NativeSidecars reports whether proxies of a node, or of all where that is not known yet, can be native sidecars. It
	// may be nil, and must not block.
	NativeSidecars func(node string) bool
	// Now is the clock of the metric of how long injections take.
	Now func() time.Time
	Log *slog.Logger
}

// Handler is the webhook. It serves any path: what follows the first word are variables for the proxy, see
// inject.PathEnv.
type Handler struct {
	options Options
	reviews *Reviews
	metrics *metrics
}

// New makes a Handler.
func New(o Options) *Handler {
	h := &Handler{options: o, metrics: newMetrics()}
	h.reviews = NewReviews("injection", o.Log, h.review)
	return h
}

// ServeHTTP answers one AdmissionReview.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.metrics.requests.Inc()
	start := h.options.Now()
	if !h.reviews.serve(w, r) {
		h.metrics.failures.Inc()
	}
	h.metrics.seconds.Observe(h.options.Now().Sub(start).Seconds())
}

// review decides on one object. Whatever is no pod is let in as it is.
func (h *Handler) review(req *admissionv1.AdmissionRequest, path string) (*admissionv1.AdmissionResponse, error) {
	in := h.options.Injector()
	if in == nil {
		return nil, Unavailable("the injector's settings are not read yet")
	}
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	if req.Resource.Group != "" || req.Resource.Resource != "pods" || req.SubResource != "" ||
		len(req.Object.Raw) == 0 {
		h.metrics.skips.Inc()
		return allowed, nil
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return h.refuse(req, pod, fmt.Errorf("expected a pod: %w", err)), nil
	}
	request := inject.Request{Pod: pod, Namespace: req.Namespace, Env: inject.PathEnv(path)}
	if h.options.NamespaceAnnotations != nil {
		request.NamespaceAnnotations = h.options.NamespaceAnnotations(cmp.Or(pod.Namespace, req.Namespace))
	}
	if h.options.NativeSidecars != nil {
		request.NativeSidecars = h.options.NativeSidecars(pod.Spec.NodeName)
	}
	result, err := in.Inject(request)
	if err != nil {
		return h.refuse(req, pod, err), nil
	}
	allowed.Warnings = result.Warnings
	if result.Skipped != "" {
		h.metrics.skips.Inc()
		h.options.Log.Debug("injection: skipped", "pod", nameOf(req, pod), "reason", result.Skipped)
		return allowed, nil
	}
	if allowed.Patch, err = inject.Patch(req.Object.Raw, pod, result.Pod); err != nil {
		return h.refuse(req, pod, err), nil
	}
	allowed.PatchType = new(admissionv1.PatchTypeJSONPatch)
	h.metrics.successes.Inc()
	return allowed, nil
}

// refuse keeps a pod out that cannot be injected: without its proxy no policy of the mesh would hold for it.
func (h *Handler) refuse(req *admissionv1.AdmissionRequest, pod *corev1.Pod,
	err error) *admissionv1.AdmissionResponse {
	h.metrics.failures.Inc()
	name := nameOf(req, pod)
	h.options.Log.Warn("injection: pod refused", "pod", name, "error", err)
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusBadRequest, Message: fmt.Sprintf("pod %s cannot be injected: %s", name, err)}}
}

// nameOf returns a pod's name, or what its generated name will begin with.
func nameOf(req *admissionv1.AdmissionRequest, pod *corev1.Pod) string {
	name := cmp.Or(pod.Name, req.Name)
	if name == "" && pod.GenerateName != "" {
		name = pod.GenerateName + "…"
	}
	return cmp.Or(pod.Namespace, req.Namespace) + "/" + name
}
