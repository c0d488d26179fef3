package ingest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// door is the owner name under which the Store reports refused objects and files.
const door = "door"

// location is something that a source could not read: a file.
type location struct{ source, name string }

// Reject reports something that a source cannot read. Reports of one location add up until Accept withdraws them.
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

// Accept withdraws all that Reject reported about location.
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

// fileOf returns where without its line number: "dir/a.yaml" for "dir/a.yaml:12".
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

// standing updates metrics and reports when a Rejection appears, changes or goes away.
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

// tellOfLocation reports what is wrong with a location that cannot be read. Called under mu.
func (s *Store) tellOfLocation(at location) {
	s.settings.Reports.Set(report.Subject{Owner: door, Location: at.source + ":" + at.name},
		problemsOf(s.unreadable[at], report.Unreadable))
}

// tellOfObject reports which versions of an object are refused, and which fields of the one in force have no effect.
// Called under mu.
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
