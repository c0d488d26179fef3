package file

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// fresh is how long a file must have been unchanged, when it is read, for equal size and times to prove equal
	// content later. File systems record time in coarse steps.
	fresh = 2 * time.Second
	// rest is how long a file that was changed in place must be left alone before it is read, if the system does not
	// tell who writes.
	rest = 100 * time.Millisecond
	// patience takes the place of rest if the content looks incomplete: objects are missing, it does not parse, or its
	// last line has no end. It is also how long to wait for a process that holds the file open for writing and does not
	// write.
	patience = time.Second
)

// settling decides when a file is complete and can be read. It uses its own observations of the file and a monotonic
// clock, because wall clocks jump and those of file servers differ.
//
// A file is not read while a process is writing it. If the system tells who writes (see leased), that is the only
// condition. If it does not, because the file belongs to another user or is on another machine, a file that was changed
// in place is read once it has been left alone for a moment, and a file that was renamed to its place after it was
// written is read at once.
//
// Owned by the goroutine that calls Run.
type settling struct {
	// blind disables asking the system who writes. Immutable.
	blind bool

	seen  fs.FileInfo   // the file's state when last seen; nil before that
	since time.Time     // when that state was first seen
	need  time.Duration // how long it must last; 0 if no process can be writing
	taken fs.FileInfo   // the file's state when it was last read
}

// note records the present state of the file.
func (q *settling) note(now fs.FileInfo, at time.Time) {
	if q.seen == nil || !sameState(q.seen, now) {
		q.seen, q.since, q.need = now, at, rest
	}
}

// proves reports whether the file has had its present state for longer than fresh.
func (q *settling) proves(now fs.FileInfo, at time.Time) bool {
	return q.seen != nil && sameState(q.seen, now) && at.Sub(q.since) > fresh
}

// tooSoon reports whether to discard a reading that looks incomplete and read the file again later.
func (q *settling) tooSoon(at time.Time, half bool) bool {
	if !half || q.need == 0 || at.Sub(q.since) >= patience {
		return false
	}
	q.need = patience
	return true
}

// read reads the file; finished is false if a process is writing it, or may be. had says that the file had content
// before, so that an empty file looks incomplete.
func (q *settling) read(path string, at time.Time, had bool) (data []byte, finished bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that opening a pipe does not block
	if err != nil {
		return nil, true, err
	}
	defer f.Close()
	before, err := f.Stat()
	switch {
	case err != nil:
		return nil, true, err
	case !before.Mode().IsRegular():
		return nil, true, fmt.Errorf("it is no regular file but %v", before.Mode().Type())
	case before.Size() > maxFile:
		return nil, true, fmt.Errorf("it has %d bytes: expected at most %d", before.Size(), maxFile)
	}
	q.note(before, at)
	var writing, known bool
	if !q.blind {
		writing, known = leased(f, func() { data, err = io.ReadAll(io.LimitReader(f, maxFile+1)) })
	}
	if known && !writing {
		q.need, q.taken = 0, before
		return data, true, err
	}
	if !known && q.moved(before) {
		q.need = 0
	}
	if quiet := at.Sub(q.since); quiet < q.need || writing && quiet < patience {
		return nil, false, nil
	}
	if data, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err != nil {
		return nil, true, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, true, err
	}
	if q.note(after, at); !sameState(before, after) || q.tooSoon(at, len(data) == 0 && had || len(data) > 0 &&
		data[len(data)-1] != '\n' && !whole(data)) {
		return nil, false, nil
	}
	q.taken = before
	return data, true, nil
}

// moved reports whether the file was renamed to its place, or had its times set, after it was last written, which is
// done with complete files. A file that was in this place before may have been changed in place since.
func (q *settling) moved(now fs.FileInfo) bool {
	return (q.taken == nil || !os.SameFile(q.taken, now)) && changedAt(now).After(now.ModTime()) && now.Size() > 0
}

// whole reports whether a text whose last line has no end is complete all the same: a complete JSON value.
func whole(data []byte) bool {
	text := bytes.TrimSpace(data)
	return len(text) > 1 && (text[0] == '{' && text[len(text)-1] == '}' || text[0] == '[' && text[len(text)-1] == ']')
}

// sameState reports whether size, times and identity of a file are equal in two observations.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) &&
		changedAt(a).Equal(changedAt(b))
}
