package ingest

import (
	"github.com/pilotd/pilotd/envoytext"
	"github.com/pilotd/pilotd/ingest/support"
	"github.com/pilotd/pilotd/report"
)

// Judge tells what a Store would say of an object, without taking it. The webhook uses it before the API server stores
// the object. Immutable; safe for concurrent use.
type Judge struct {
	kinds   KindTable
	limits  limits
	support *support.Table
}

// NewJudge returns a Judge that decides like a Store with the same Settings.RegexSize.
func NewJudge(regexSize int) *Judge {
	if regexSize == 0 {
		regexSize = envoytext.IstioRegexSize
	}
	return &Judge{kinds: NewKindTable(), limits: limits{regexSize}, support: support.New()}
}

// Judge returns the reason why the object of an Event would be refused, or nil and the fields that the object sets
// without effect. It looks at the object alone.
func (j *Judge) Judge(e Event) (*Rejection, []report.Problem) {
	k := j.kinds[e.Key.Kind]
	e.Object = k.Strip(new(Stripper), e.Object)
	if p := k.admit(e.Key, e.Object, j.limits); p != nil {
		return &Rejection{Source: e.Source, Key: e.Key, Where: e.Where, Field: p.field, Reason: p.reason}, nil
	}
	return nil, j.unserved(k, e)
}
