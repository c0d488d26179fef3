package main

import (
	"cmp"
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

// mostWarnings is how many fields without effect are told to whoever stores an object; /debug/rejectionsz has all.
const mostWarnings = 10

// validator tells whoever stores an object what pilotd would make of it: one that could not come into force is kept
// from being stored, and of what has no effect it is warned. It says what is said of objects that are stored already.
type validator struct {
	// Immutable.
	kinds  ingest.KindTable
	judge  *ingest.Judge
	log    *slog.Logger
	passed *prometheus.CounterVec
	// failed counts objects that are refused, here and at other doors, by kind. It is set before anybody asks.
	failed *prometheus.CounterVec
}

func newValidator(regexSize int, log *slog.Logger) *validator {
	return &validator{kinds: ingest.NewKindTable(), judge: ingest.NewJudge(regexSize), log: log,
		passed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "galley_validation_passed",
			Help: "Objects that the validating webhook let in, by kind."}, []string{"type"})}
}

// handler is the webhook.
func (v *validator) handler() http.Handler {
	return admission.NewReviews("validation", v.log, v.review)
}

// review decides on one object. Kinds that pilotd does not know, and those that every API server checks by itself, are
// let in.
func (v *validator) review(req *admissionv1.AdmissionRequest, _ string) (*admissionv1.AdmissionResponse, error) {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	k := v.kinds.InAPI(req.Kind.Group, req.Kind.Kind)
	if k == nil || k.Builtin || k.ForInjection || req.SubResource != "" || len(req.Object.Raw) == 0 {
		return allowed, nil
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

func (v *validator) refuse(req *admissionv1.AdmissionRequest, r *ingest.Rejection) *admissionv1.AdmissionResponse {
	k := v.kinds.InAPI(req.Kind.Group, req.Kind.Kind)
	v.failed.WithLabelValues(k.Name.String()).Inc()
	text := said(r.Field, r.Reason)
	v.log.Info("validation: refused", "kind", k.Name, "namespace", req.Namespace, "name", req.Name, "reason", text)
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusBadRequest, Message: text}}
}

// said is a reason with the field that it is about.
func said(field, reason string) string {
	if field == "" {
		return reason
	}
	return field + ": " + reason
}
