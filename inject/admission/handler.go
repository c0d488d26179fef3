// Package admission answers the API server's questions about pods: an AdmissionReview comes in, a JSON patch that
// injects the pod goes out.
//
// Whoever reaches the port may ask, and learns what injection would make of a pod of their own; nothing is stored and
// nobody else is asked. What all requests may cost is bounded: the size of each, and how many are read and answered at
// once, large ones apart from small ones.
package admission

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/inject"
)

const (
	// MaxBody is how many bytes a request may have. The API server takes no object of more than 3 MiB.
	MaxBody = 4 << 20
	// smallBody is how many bytes a request may have without waiting for one of the places of large ones.
	smallBody = 256 << 10
	// largeBodies and smallBodies are how many requests of each sort are read and answered at once; others wait.
	largeBodies, smallBodies = 4, 64
)

// Options are what a Handler is made from.
type Options struct {
	// Injector is the injector of the settings that hold now; it answers nil while there are none. It must not block.
	Injector func() *inject.Injector
	// NamespaceAnnotations are a namespace's annotations, which OpenShift uses. It may be nil, and must not block.
	NamespaceAnnotations func(namespace string) map[string]string
	// Now is the clock of the metric of how long injections take.
	Now func() time.Time
	Log *slog.Logger
}

// Handler is the webhook. It serves any path: what follows the first word are variables for the proxy, see
// inject.PathEnv.
type Handler struct {
	options Options
	// large and small have a token for each request that is read or answered.
	large, small chan struct{}
	metrics      *metrics
}

// New makes a Handler.
func New(o Options) *Handler {
	return &Handler{options: o, large: make(chan struct{}, largeBodies), small: make(chan struct{}, smallBodies),
		metrics: newMetrics()}
}

// problem is an answer that is no AdmissionReview: the API server goes by the webhook's failurePolicy then.
type problem struct {
	code int
	text string
}

func (p *problem) Error() string { return p.text }

// ServeHTTP answers one AdmissionReview.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.metrics.requests.Inc()
	start := h.options.Now()
	review, err := h.answer(w, r)
	h.metrics.seconds.Observe(h.options.Now().Sub(start).Seconds())
	if err != nil {
		h.metrics.failures.Inc()
		p := &problem{http.StatusInternalServerError, "internal error"}
		errors.As(err, &p)
		h.options.Log.Warn("injection: bad request", "error", err, "from", r.RemoteAddr)
		http.Error(w, p.text, p.code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(review); err != nil {
		h.options.Log.Debug("injection: the answer was not taken", "error", err)
	}
}

// answer makes the text of the answer to a request.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, &problem{http.StatusMethodNotAllowed, "expected POST"}
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return nil, &problem{http.StatusUnsupportedMediaType, "expected Content-Type application/json"}
	}
	places := h.small
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		places = h.large
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-r.Context().Done():
		return nil, &problem{http.StatusServiceUnavailable, "too many requests"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("expected at most %d bytes", MaxBody)}
		}
		return nil, &problem{http.StatusBadRequest, "the request ends too early"}
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, &problem{http.StatusBadRequest, "expected an AdmissionReview: " + err.Error()}
	}
	if v := admissionv1.SchemeGroupVersion.String(); review.APIVersion != v || review.Kind != "AdmissionReview" {
		return nil, &problem{http.StatusBadRequest, "expected an AdmissionReview of " + v}
	}
	if review.Request == nil {
		return nil, &problem{http.StatusBadRequest, "expected an AdmissionReview with a request"}
	}
	in := h.options.Injector()
	if in == nil {
		return nil, &problem{http.StatusServiceUnavailable, "the injector's settings are not read yet"}
	}
	review.Response = h.review(in, review.Request, r.URL.Path)
	review.Response.UID, review.Request = review.Request.UID, nil
	return json.Marshal(review)
}

// review decides on one object. Whatever is no pod is let in as it is.
func (h *Handler) review(in *inject.Injector, req *admissionv1.AdmissionRequest,
	path string) *admissionv1.AdmissionResponse {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	if req.Resource.Group != "" || req.Resource.Resource != "pods" || req.SubResource != "" ||
		len(req.Object.Raw) == 0 {
		h.metrics.skips.Inc()
		return allowed
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return h.refuse(req, pod, fmt.Errorf("expected a pod: %w", err))
	}
	request := inject.Request{Pod: pod, Namespace: req.Namespace, Env: inject.PathEnv(path)}
	if h.options.NamespaceAnnotations != nil {
		request.NamespaceAnnotations = h.options.NamespaceAnnotations(cmp.Or(pod.Namespace, req.Namespace))
	}
	result, err := in.Inject(request)
	if err != nil {
		return h.refuse(req, pod, err)
	}
	allowed.Warnings = result.Warnings
	if result.Skipped != "" {
		h.metrics.skips.Inc()
		h.options.Log.Debug("injection: skipped", "pod", nameOf(req, pod), "reason", result.Skipped)
		return allowed
	}
	if allowed.Patch, err = inject.Patch(req.Object.Raw, pod, result.Pod); err != nil {
		return h.refuse(req, pod, err)
	}
	allowed.PatchType = new(admissionv1.PatchTypeJSONPatch)
	h.metrics.successes.Inc()
	return allowed
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
