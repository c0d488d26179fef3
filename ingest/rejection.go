package ingest

import (
	"slices"
	"strings"
)

// place is what a source cannot read: a file.
type place struct{ source, name string }

// Reject takes the report of what a source cannot even read. It adds to what was said of the same place since its last Accept.
func (s *Store) Reject(r Rejection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := placeOf(r)
	if slices.Contains(s.unreadable[at], r) {
		return
	}
	s.unreadable[at] = append(s.unreadable[at], r)
	s.rejected++
	s.report(r)
	s.gauge()
}

// Accept takes back what Reject said of place.
func (s *Store) Accept(source, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{source, fileOf(name)}
	s.rejected -= len(s.unreadable[at])
	delete(s.unreadable, at)
	s.gauge()
}

func placeOf(r Rejection) place {
	if r.Where == "" {
		return place{r.Source, r.Key.String()}
	}
	return place{r.Source, fileOf(r.Where)}
}

// fileOf is where without a trailing line number: "dir/a.yaml:12" is in "dir/a.yaml".
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
		s.report(*is)
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

// report says in one line what was refused, where, and what was expected.
func (s *Store) report(r Rejection) {
	count(s.settings.Metrics.Refused, kindOf(r))
	s.settings.Log.Warn("refused", "object", r.Key.String(), "source", r.Source, "where", r.Where, "field", r.Field, "reason", r.Reason)
}
