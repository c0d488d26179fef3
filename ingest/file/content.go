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

// content is what a file says. Owned by the goroutine that calls Run.
type content struct {
	path string
	age  int64       // grows in path order; see order
	info fs.FileInfo // of the reading; nil when the file is to be read again
	// the file had been as it is for long enough, when it was read, for info to prove that the content is the same
	proven   bool
	settling settling
	sum      [sha256.Size]byte
	texts    map[[sha256.Size]byte]*document // the documents, by what they say
	objects  []object
	problems []problem
	skipped  int       // objects of kinds that are not used
	gone     time.Time // when the file was first missed; zero while it is there
}

// refresh brings c up to date with the file, and reports whether c is another then. It is not done, and leaves c as it
// is, when the file is being written or replaced. A panic over what the file says leaves c as it is, and is a problem
// of the file.
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

// parse reads what data says; bad is a panic over it.
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

// loses reports whether a reading lacks an object that the file had.
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

// replace puts in force what a reading says; what does not parse keeps what was.
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

// keepLastGood adds to the objects of a reading the former versions of those that did not decode.
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
