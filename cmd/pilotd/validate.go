package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/kube"
	"github.com/pilotd/pilotd/inject/admission"
)

// mostWarnings bounds the fields without effect that one review lists; /debug/rejectionsz has all of them.
const mostWarnings = 10

// validator is the webhook that reviews objects before they are stored. It refuses an object that pilotd would refuse,
// and warns about fields without effect, with the same words as for stored objects.
type validator struct {
	// Immutable.
	kinds  ingest.KindTable
	judge  *ingest.Judge
	log    *slog.Logger
	passed *prometheus.CounterVec
	// failed counts refused objects by kind, here and at injection. It is set before the first request.
	failed *prometheus.CounterVec
}

func newValidator(regexSize int, log *slog.Logger) *validator {
	return &validator{kinds: ingest.NewKindTable(), judge: ingest.NewJudge(regexSize), log: log,
		passed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "galley_validation_passed",
			Help: "Objects that the validating webhook let in, by kind."}, []string{"type"})}
}

// handler returns the webhook's HTTP handler.
func (v *validator) handler() http.Handler {
	return admission.NewReviews("validation", v.log, v.review)
}

// review decides about one object. It accepts kinds that pilotd does not know, and kinds that every API server
// validates itself.
func (v *validator) review(req *admissionv1.AdmissionRequest, _ string) (*admissionv1.AdmissionResponse, error) {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	k := v.kinds.InAPI(req.Kind.Group, req.Kind.Kind)
	if k == nil || k.Builtin || req.SubResource != "" || len(req.Object.Raw) == 0 {
		return allowed, nil
	}
	if k.ForInjection {
		return v.reviewProxyConfig(req)
	}
	e := ingest.Event{Source: "validation", Key: k.Key(req.Namespace, req.Name), Object: ingest.NotServed{}}
	if k.NotServed == "" {
		o, err := kube.Decode(k, req.Object.Raw)
		if err != nil {
			return v.refuse(req, &ingest.Rejection{Field: "spec", Reason: err.Error()}), nil
		}
		o.SetNamespace(e.Key.Namespace)
		e.Key.Name, e.Object = cmp.Or(o.GetName(), req.Name, o.GetGenerateName()+"x"), o
	}
	refused, unserved := v.judge.Judge(e)
	if refused != nil {
		return v.refuse(req, refused), nil
	}
	for i, p := range unserved {
		if i == mostWarnings {
			allowed.Warnings = append(allowed.Warnings, fmt.Sprintf("%d more have no effect", len(unserved)-i))
			break
		}
		allowed.Warnings = append(allowed.Warnings, said(p.Field, p.Reason))
	}
	v.passed.WithLabelValues(k.Name.String()).Inc()
	return allowed, nil
}

// reviewProxyConfig is review for the kind that no Store reads.
func (v *validator) reviewProxyConfig(req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return v.refuse(req, &ingest.Rejection{Reason: err.Error()}), nil
	}
	if _, refused := ingest.ReadProxyConfig(object.Spec); refused != nil {
		return v.refuse(req, refused), nil
	}
	v.passed.WithLabelValues(req.Kind.Kind).Inc()
	return &admissionv1.AdmissionResponse{Allowed: true}, nil
}

func (v *validator) refuse(req *admissionv1.AdmissionRequest, r *ingest.Rejection) *admissionv1.AdmissionResponse {
	k := v.kinds.InAPI(req.Kind.Group, req.Kind.Kind)
	v.failed.WithLabelValues(k.Name.String()).Inc()
	text := said(r.Field, r.Reason)
	v.log.Info("validation: refused", "kind", k.Name, "namespace", req.Namespace, "name", req.Name, "reason", text)
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusBadRequest, Message: text}}
}

// said returns a reason with the field that it is about.
func said(field, reason string) string {
	if field == "" {
		return reason
	}
	return field + ": " + reason
}
