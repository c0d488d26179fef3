package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

const (
	// MaxBody is how many bytes a request may have. The API server takes no object of more than 3 MiB.
	MaxBody = 4 << 20
	// smallBody is how many bytes a request may have without waiting for one of the places of large ones.
	smallBody = 256 << 10
	// largeBodies and smallBodies are how many requests of each sort are read and answered at once; others wait.
	largeBodies, smallBodies = 4, 64
)

// Review decides on one request, whose URL had this path. An error is no decision: the API server goes by the webhook's
// failurePolicy then.
type Review func(req *admissionv1.AdmissionRequest, path string) (*admissionv1.AdmissionResponse, error)

// Reviews is a webhook: it reads AdmissionReviews within bounds, and answers them with what a Review decides.
type Reviews struct {
	// Immutable.
	what   string
	log    *slog.Logger
	review Review
	// large and small have a token for each request that is read or answered.
	large, small chan struct{}
}

// NewReviews makes a webhook. what is its name in the log.
func NewReviews(what string, log *slog.Logger, review Review) *Reviews {
	return &Reviews{what: what, log: log, review: review, large: make(chan struct{}, largeBodies),
		small: make(chan struct{}, smallBodies)}
}

// ServeHTTP answers one AdmissionReview.
func (h *Reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.serve(w, r) }

// serve reports whether there was a decision.
func (h *Reviews) serve(w http.ResponseWriter, r *http.Request) bool {
	review, err := h.answer(w, r)
	if err != nil {
		p := &problem{http.StatusInternalServerError, "internal error"}
		errors.As(err, &p)
		h.log.Warn(h.what+": bad request", "error", err, "from", r.RemoteAddr)
		http.Error(w, p.text, p.code)
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(review); err != nil {
		h.log.Debug(h.what+": the answer was not taken", "error", err)
	}
	return true
}

// problem is an answer that is no AdmissionReview: the API server goes by the webhook's failurePolicy then.
type problem struct {
	code int
	text string
}

func (p *problem) Error() string { return p.text }

// Unavailable is the error of a Review that cannot decide yet.
func Unavailable(text string) error { return &problem{http.StatusServiceUnavailable, text} }

// answer makes the text of the answer to a request.
func (h *Reviews) answer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
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
	body, err := readBody(w, r)
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("expected at most %d bytes", MaxBody)}
		}
		return nil, &problem{http.StatusBadRequest, "the request ends too early"}
	}
	review, err := readReview(body)
	if err != nil {
		return nil, &problem{http.StatusBadRequest, "expected an AdmissionReview: " + err.Error()}
	}
	if v := admissionv1.SchemeGroupVersion.String(); review.APIVersion != v || review.Kind != "AdmissionReview" {
		return nil, &problem{http.StatusBadRequest, "expected an AdmissionReview of " + v}
	}
	if review.Request == nil {
		return nil, &problem{http.StatusBadRequest, "expected an AdmissionReview with a request"}
	}
	if review.Response, err = h.review(review.Request, r.URL.Path); err != nil {
		return nil, err
	}
	review.Response.UID, review.Request = review.Request.UID, nil
	return json.Marshal(review)
}

// readBody reads a body into one piece, whose length is known beforehand as a rule.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= MaxBody {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	return b.Bytes(), err
}
