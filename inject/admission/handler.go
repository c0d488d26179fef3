// Package admission answers the API server's questions about pods: an AdmissionReview comes in, a JSON patch that
// injects the pod goes out. Its Reviews are for other webhooks too.
//
// Whoever reaches the port may ask, and learns what injection would make of a pod of their own; nobody else is asked.
// What was made of a pod is kept for those that are like it but for what the API server makes anew for each. What all
// requests may cost is bounded: the size of each, how many are read and answered at once, large ones apart from small
// ones, and how much is kept.
package admission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
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
	answers *answers
	metrics *metrics
}

// New makes a Handler.
func New(o Options) *Handler {
	h := &Handler{options: o}
	h.answers = newAnswers()
	h.metrics = newMetrics(h.answers.size)
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
	if req.Resource.Group != "" || req.Resource.Resource != "pods" || req.SubResource != "" ||
		len(req.Object.Raw) == 0 {
		h.metrics.skips.Inc()
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	q := question{in, req, path}
	if like, ok := alikeOf(req.Object.Raw); ok {
		if response := h.reviewAlike(q, &like); response != nil {
			return response, nil
		}
	}
	pod, err := q.read(req.Object.Raw)
	if err != nil {
		return h.refuse(req, pod, err), nil
	}
	made, err := h.inject(q, pod, req.Object.Raw)
	if err != nil {
		return h.refuse(req, pod, err), nil
	}
	return h.allow(made, made.patchFor(nil)), nil
}

// reviewAlike answers with what was made before of a pod like this one, or injects what they have in common and keeps
// what comes of it. It returns nil where the pod is refused, or must be injected as it stands.
func (h *Handler) reviewAlike(q question, like *alike) *admissionv1.AdmissionResponse {
	key := keyOf(like, q.req.Namespace, q.path)
	if kept := h.answers.get(q.in, key); kept != nil && kept.around.same(h.surroundings(kept.around.of)) {
		h.metrics.hits.Inc()
		return h.allow(kept, kept.patchFor(like))
	}
	h.metrics.misses.Inc()
	pod, err := q.read(like.text)
	if err != nil || !like.readAs(pod) || !q.in.BuiltinOnly(pod) {
		return nil
	}
	made, err := h.inject(q, pod, like.text)
	if err != nil {
		return nil
	}
	if made.skipped == "" {
		made.key = key
		h.answers.put(q.in, made)
	}
	return h.allow(made, made.patchFor(like))
}

// question is one request about a pod.
type question struct {
	in   *inject.Injector
	req  *admissionv1.AdmissionRequest
	path string
}

// read decodes the pod.
func (q question) read(raw []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return pod, fmt.Errorf("expected a pod: %w", err)
	}
	return pod, nil
}

// place is where a pod is made, as far as anybody knows yet.
type place struct{ namespace, node string }

// around is what is known of a place.
type around struct {
	of          place
	annotations map[string]string
	native      bool
}

func (h *Handler) surroundings(of place) around {
	out := around{of: of}
	if h.options.NamespaceAnnotations != nil {
		out.annotations = h.options.NamespaceAnnotations(of.namespace)
	}
	if h.options.NativeSidecars != nil {
		out.native = h.options.NativeSidecars(of.node)
	}
	return out
}

func (a around) same(b around) bool {
	return a.of == b.of && a.native == b.native && maps.Equal(a.annotations, b.annotations)
}

// inject makes the patch of a pod, whose JSON is raw.
func (h *Handler) inject(q question, pod *corev1.Pod, raw []byte) (*answer, error) {
	about := h.surroundings(place{cmp.Or(pod.Namespace, q.req.Namespace), pod.Spec.NodeName})
	result, err := q.in.Inject(inject.Request{Pod: pod, Namespace: q.req.Namespace, Env: inject.PathEnv(q.path),
		NamespaceAnnotations: about.annotations, NativeSidecars: about.native})
	if err != nil {
		return nil, err
	}
	made := &answer{warnings: result.Warnings, skipped: result.Skipped, around: about}
	if made.skipped != "" {
		h.options.Log.Debug("injection: skipped", "pod", nameOf(q.req, pod), "reason", made.skipped)
		return made, nil
	}
	patch, err := inject.Patch(raw, pod, result.Pod)
	made.patch = bytes.Split(patch, []byte(commonName))
	return made, err
}

// allow lets a pod in, with a patch where it was injected.
func (h *Handler) allow(made *answer, patch []byte) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{Allowed: true, Warnings: made.warnings}
	if made.skipped != "" {
		h.metrics.skips.Inc()
		return response
	}
	response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	h.metrics.successes.Inc()
	return response
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
