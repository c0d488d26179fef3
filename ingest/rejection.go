package ingest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// door is the Store's name as an owner of reports.
const door = "door"

// location is what a source cannot read: a file.
type location struct{ source, name string }

// Reject takes the report of what a source cannot even read. It adds to what was said of the same location since its
// last Accept.
func (s *Store) Reject(r Rejection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := locationOf(r)
	if slices.Contains(s.unreadable[at], r) {
		return
	}
	s.unreadable[at] = append(s.unreadable[at], r)
	s.rejected++
	count(s.settings.Metrics.Refused, kindOf(r))
	s.tellOfLocation(at)
	s.gauge()
}

// Accept takes back what Reject said of location.
func (s *Store) Accept(source, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := location{source, fileOf(name)}
	s.rejected -= len(s.unreadable[at])
	delete(s.unreadable, at)
	s.tellOfLocation(at)
	s.gauge()
}

func locationOf(r Rejection) location {
	if r.Where == "" {
		return location{r.Source, r.Key.String()}
	}
	return location{r.Source, fileOf(r.Where)}
}

// fileOf returns where without a trailing line number: "dir/a.yaml:12" is in "dir/a.yaml".
func fileOf(where string) string {
	i := strings.LastIndexByte(where, ':')
	if i < 0 || i == len(where)-1 || strings.Trim(where[i+1:], "0123456789") != "" {
		return where
	}
	return where[:i]
}

func (s *Store) refuse(e Event, p problem) *Rejection {
	return &Rejection{Source: e.Source, Key: e.Key, Where: e.Where, Field: p.field, Reason: p.reason}
}

// standing tells of a Rejection that came, changed or went away.
func (s *Store) standing(was, is *Rejection) {
	if is != nil && (was == nil || *was != *is) {
		count(s.settings.Metrics.Refused, kindOf(*is))
	}
	if was == nil && is != nil {
		s.rejected++
	}
	if was != nil && is == nil {
		s.rejected--
	}
	s.gauge()
}

func (s *Store) gauge() {
	if f := s.settings.Metrics.Standing; f != nil {
		f(s.rejected)
	}
}

// tellOfLocation reports what is said of a location that does not read. Called under mu.
func (s *Store) tellOfLocation(at location) {
	s.settings.Reports.Set(report.Subject{Owner: door, Location: at.source + ":" + at.name},
		problemsOf(s.unreadable[at], report.Unreadable))
}

// tellOfObject reports which versions of an object are refused, and what the one in force sets without effect. Called
// under mu.
func (s *Store) tellOfObject(key value.ObjectKey, held versions) {
	var refused []Rejection
	var unserved []report.Problem
	for i := len(held) - 1; i >= 0; i-- {
		if held[i].refused != nil {
			refused = append(refused, *held[i].refused)
		}
		if held[i].good != nil {
			unserved = held[i].unserved
		}
	}
	s.settings.Reports.Set(report.Subject{Owner: door, Key: key}, append(problemsOf(refused, report.Invalid),
		unserved...))
}

func problemsOf(rejections []Rejection, cause report.Cause) (out []report.Problem) {
	for _, r := range rejections {
		out = append(out, report.Problem{Source: r.Source, Key: r.Key, Where: r.Where, Field: r.Field,
			Cause: cmp.Or(r.Cause, cause), Reason: r.Reason})
	}
	return out
}
