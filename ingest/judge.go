package ingest

import (
	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/ingest/support"
	"github.com/pilotd/pilotd/report"
)

// Judge says what a Store would say of an object, which it does not take: for those who ask before an object is stored.
// Immutable; safe for concurrent use.
type Judge struct {
	kinds   KindTable
	limits  limits
	support *support.Table
}

// NewJudge makes the Judge of a Store with the same Settings.RegexSize.
func NewJudge(regexSize int) *Judge {
	if regexSize == 0 {
		regexSize = envoytext.IstioRegexSize
	}
	return &Judge{kinds: NewKindTable(), limits: limits{regexSize}, support: support.New()}
}

// Judge says why the object of an Event cannot come into force, nil if it can, and if so what it sets without effect.
// It looks at the object alone.
func (j *Judge) Judge(e Event) (*Rejection, []report.Problem) {
	k := j.kinds[e.Key.Kind]
	e.Object = k.Strip(new(Stripper), e.Object)
	if p := k.admit(e.Key, e.Object, j.limits); p != nil {
		return &Rejection{Source: e.Source, Key: e.Key, Where: e.Where, Field: p.field, Reason: p.reason}, nil
	}
	return nil, j.unserved(k, e)
}
