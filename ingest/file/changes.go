package file

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/pilotd/pilotd/snapshot/value"
)

// changes is what the sink has to be told.
type changes struct {
	keys  map[value.ObjectKey]struct{}
	paths map[string]struct{} // files whose problems may have changed
	all   bool                // every file got a new age
}

func newChanges() changes {
	return changes{keys: map[value.ObjectKey]struct{}{}, paths: map[string]struct{}{}}
}

// objects records that objects of a file may have changed.
func (c *changes) objects(file *content, objects []object) {
	c.paths[file.path] = struct{}{}
	for i := range objects {
		c.keys[objects[i].key] = struct{}{}
	}
}

// read reads an existing file again if it changed.
func (s *Source) read(path string, info fs.FileInfo) {
	c := s.files[path]
	if c == nil {
		c = &content{path: path, settling: settling{blind: s.blind}}
		s.files[path] = c
		s.changes.all = s.order.add(c) || s.changes.all
	}
	s.found(c)
	before, skipped := c.objects, c.skipped
	changed, done := c.refresh(info, s.rules)
	if !done {
		s.unsettled[path] = true
	}
	if changed {
		s.skipped += c.skipped - skipped
		s.definitions.remove(c, before)
		s.definitions.add(c)
		s.changes.objects(c, before)
		s.changes.objects(c, c.objects)
	}
}

// found records that a file exists.
func (s *Source) found(c *content) {
	if !c.gone.IsZero() {
		c.gone = time.Time{}
		s.changes.objects(c, c.objects)
	}
}

// missing records that a file does not exist. The file is forgotten only if it stays away for a moment, because an
// editor may be about to write its successor.
func (s *Source) missing(c *content, now time.Time) {
	switch {
	case c.gone.IsZero():
		c.gone = now
		s.changes.objects(c, c.objects)
	case now.Sub(c.gone) >= soon:
		delete(s.files, c.path)
		s.skipped -= c.skipped
		s.order.remove(c)
		s.definitions.remove(c, c.objects)
		s.changes.objects(c, c.objects)
		return
	}
	s.unsettled[c.path] = true
}

// hand tells the sink everything that changed, in one call.
func (s *Source) hand() {
	c := s.changes
	s.changes = newChanges()
	if c.all {
		for key := range s.definitions {
			c.keys[key] = struct{}{}
		}
	}
	for key := range c.keys {
		for _, d := range s.definitions[key] {
			c.paths[d.file.path] = struct{}{}
		}
	}
	s.report(c.paths)
	if events := s.settle(c.keys); len(events) > 0 {
		s.sink.Apply(events)
		s.log.Debug("directory read", "files", len(s.files), "changed", len(events), "skipped", s.skipped)
	}
}

// report reports the present problems of paths, if they differ from those reported before.
func (s *Source) report(paths map[string]struct{}) {
	bad := map[string][]problem{}
	for _, path := range sortedKeys(paths) {
		problems := s.problems(path)
		if equalProblems(s.reported[path], problems) {
			continue
		}
		if _, ok := s.reported[path]; ok {
			s.sink.Accept(s.dir, path)
			delete(s.reported, path)
		}
		if len(problems) > 0 {
			bad[path] = problems
		}
	}
	for _, path := range sortedKeys(bad) {
		for _, p := range bad[path] {
			s.sink.Reject(p.rejection(s.dir))
		}
		s.reported[path] = bad[path]
	}
}

// problems returns the present problems of a path.
func (s *Source) problems(path string) (out []problem) {
	if err, ok := s.failed[path]; ok {
		out = append(out, problem{path: path, reason: fmt.Sprintf("cannot be read: %v", err)})
	}
	if c := s.files[path]; c != nil {
		out = append(out, s.definitions.problems(c)...)
	}
	return out
}
