package ingest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ingest/support"
	"github.com/pilotd/pilotd/report"
)

// NotServed is the Object of an Event of a kind that pilotd does not serve (Kind.NotServed). Only the object's key is
// read, and its only effect is a report.
type NotServed struct{}

// unserved returns the fields that an admitted object sets without effect.
func (j *Judge) unserved(k *Kind, e Event) (out []report.Problem) {
	problem := report.Problem{Source: e.Source, Key: e.Key, Where: e.Where, Cause: report.NotServed}
	if k == nil {
		return nil
	}
	if k.NotServed != "" {
		problem.Reason, problem.Security = "the kind is not served yet: "+k.NotServed, k.Security
		return []report.Problem{problem}
	}
	for _, f := range j.findings(k, e.Object) {
		problem.Field, problem.Reason, problem.Security = f.Field, f.Reason, f.Security
		out = append(out, problem)
	}
	return out
}

func (j *Judge) findings(k *Kind, object any) (out []support.Finding) {
	if m, ok := object.(metav1.Object); ok {
		out = j.support.UnservedMeta(m.GetAnnotations(), m.GetLabels())
	}
	if k.message == nil {
		return out
	}
	if m, path := k.message(object); m != nil {
		out = append(out, j.support.Unserved(m, path)...)
	}
	return out
}
