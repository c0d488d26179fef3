package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/pilotd/pilotd/snapshot/value"
)

const (
	// fresh is how old a file's modification time has to be for the time and the size to prove that the content is the same: file
	// systems keep time in coarse steps.
	fresh = 2 * time.Second
	// patience is how long a file that somebody holds open for writing without writing is waited for.
	patience = time.Second
)

// content is what a file says. Owned by the goroutine that calls Run.
type content struct {
	path     string
	age      int64       // grows in path order; see order
	info     fs.FileInfo // of the reading; nil when the file is to be read again
	readAt   time.Time
	sum      [sha256.Size]byte
	texts    map[[sha256.Size]byte]*document // the documents, by what they say
	objects  []object
	problems []problem
	skipped  int       // objects of kinds that are not used
	gone     time.Time // when the file was first missed; zero while it is there
}

// refresh brings c up to date with the file, and reports whether c is another then. It is not done, and leaves c as it is, when the file is
// being written or replaced.
func (c *content) refresh(now fs.FileInfo, mesh value.ObjectKey) (changed, done bool) {
	if c.unchanged(now) {
		return false, true
	}
	at := time.Now()
	data, finished, err := readFinished(c.path, len(c.objects) > 0)
	if !finished || errors.Is(err, fs.ErrNotExist) {
		return false, false
	}
	if err != nil {
		c.info, c.sum = nil, [sha256.Size]byte{}
		c.problems = []problem{{path: c.path, reason: fmt.Sprintf("cannot be read: %v", err)}}
		return true, true
	}
	c.info, c.readAt = now, at
	sum := sha256.Sum256(data)
	if sum == c.sum {
		return false, true
	}
	c.sum = sum
	c.replace(data, mesh)
	return true, true
}

func (c *content) unchanged(now fs.FileInfo) bool {
	return c.info != nil && os.SameFile(c.info, now) && c.info.Size() == now.Size() && c.info.ModTime().Equal(now.ModTime()) &&
		c.readAt.Sub(now.ModTime()) > fresh
}

// replace puts in force what data says; what does not parse keeps what was.
func (c *content) replace(data []byte, mesh value.ObjectKey) {
	p := parser{path: c.path, mesh: mesh, known: c.texts, texts: map[[sha256.Size]byte]*document{}}
	p.parse(data)
	c.problems = p.problems
	if p.broken && len(c.objects) > 0 {
		return
	}
	c.objects = keepLastGood(p, c.objects)
	c.texts, c.skipped = p.texts, p.skipped
}

// keepLastGood adds to the objects of a reading the former versions of those that did not decode.
func keepLastGood(p parser, before []object) []object {
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

// readFinished reads a file that nobody is writing; finished is false when somebody is. hadObjects says that an empty file would be a change.
func readFinished(path string, hadObjects bool) (data []byte, finished bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, true, err
	}
	defer f.Close()
	writing, known := leased(f, func() { data, err = io.ReadAll(f) })
	if known && !writing {
		return data, true, err
	}
	before, err := f.Stat()
	if err != nil {
		return nil, true, err
	}
	quiet := time.Since(before.ModTime())
	if writing && quiet < patience {
		return nil, false, nil
	}
	if data, err = io.ReadAll(f); err != nil {
		return nil, true, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, true, err
	}
	// Without a word from the system: a file that changes under our eyes, or was emptied just now, is being written.
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return nil, false, nil
	}
	return data, len(data) > 0 || !hadObjects || quiet >= soon, nil
}
