package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pilotd/pilotd/snapshot/value"
)

// content is the last reading of a file. Owned by the goroutine that calls Run.
type content struct {
	path string
	age  int64       // grows in path order; see order
	info fs.FileInfo // of the reading; nil if the file must be read again
	// proven says that the file had been unchanged long enough, when it was read, for an equal info to prove equal
	// content.
	proven   bool
	settling settling
	sum      [sha256.Size]byte
	texts    map[[sha256.Size]byte]*document // its documents, by the hash of their text
	objects  []object
	problems []problem
	skipped  int       // number of objects of kinds that pilotd does not use
	gone     time.Time // when the file was first missing; zero while it exists
}

// refresh reads the file if it changed, and reports whether c changed. If some process is writing or replacing the
// file, done is false and c stays as it was. If reading panics, c keeps its objects and gets a problem.
func (c *content) refresh(now fs.FileInfo, by rules) (changed, done bool) {
	if c.info != nil && c.proven && sameState(c.info, now) {
		return false, true
	}
	at := time.Now()
	data, finished, err := c.settling.read(c.path, at, len(c.objects) > 0)
	if !finished || errors.Is(err, fs.ErrNotExist) {
		return false, false
	}
	if err != nil {
		c.info, c.sum = nil, [sha256.Size]byte{}
		c.problems = []problem{{path: c.path, reason: fmt.Sprintf("cannot be read: %v", err)}}
		return true, true
	}
	sum := sha256.Sum256(data)
	if sum != c.sum {
		p, bad := c.parse(data, by)
		if bad == nil && c.settling.tooSoon(at, p.broken || c.loses(p)) {
			return false, false
		}
		changed = true
		c.replace(p, bad)
	}
	c.info, c.sum, c.proven = now, sum, c.settling.proves(now, at)
	return changed, true
}

// parse parses data. If that panics, bad describes the panic.
func (c *content) parse(data []byte, by rules) (p *parser, bad *problem) {
	p = &parser{path: c.path, rules: by, known: c.texts, texts: map[[sha256.Size]byte]*document{}}
	defer func() {
		if cause := recover(); cause != nil {
			bad = fault(cause)
			bad.path = c.path
		}
	}()
	p.parse(data)
	return p, nil
}

// loses reports whether p lacks an object that the file had before.
func (c *content) loses(p *parser) bool {
	has := make(map[value.ObjectKey]struct{}, len(p.objects))
	for i := range p.objects {
		has[p.objects[i].key] = struct{}{}
	}
	for _, key := range p.failed {
		has[key] = struct{}{}
	}
	return slices.ContainsFunc(c.objects, func(o object) bool { _, ok := has[o.key]; return !ok })
}

// replace puts the objects of a reading in force. Parts that do not parse keep their earlier objects.
func (c *content) replace(p *parser, bad *problem) {
	if bad != nil {
		c.problems = []problem{*bad}
		return
	}
	if c.problems = p.problems; len(c.problems) > maxProblems {
		more := problem{path: c.path, reason: fmt.Sprintf("has %d further problems", len(c.problems)-maxProblems)}
		c.problems = append(c.problems[:maxProblems:maxProblems], more)
	}
	if p.broken && len(c.objects) > 0 {
		return
	}
	c.objects = keepLastGood(p, c.objects)
	c.texts, c.skipped = p.texts, p.skipped
}

// keepLastGood returns the objects of a reading, and the earlier versions of objects that did not decode now.
func keepLastGood(p *parser, before []object) []object {
	if len(p.failed) == 0 {
		return p.objects
	}
	last := make(map[value.ObjectKey]object, len(before))
	for _, o := range before {
		last[o.key] = o
	}
	for _, key := range p.failed {
		if o, ok := last[key]; ok {
			p.objects = append(p.objects, o)
		}
	}
	return p.objects
}
