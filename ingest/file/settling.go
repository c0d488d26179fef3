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
	// fresh is how long a file has to have been as it is, when it was read, for its size and times to prove later that
	// the content is the same: file systems keep time in coarse steps.
	fresh = 2 * time.Second
	// rest is how long a file that was changed in place has to be left alone before it is read, where the system does
	// not tell who writes.
	rest = 100 * time.Millisecond
	// patience is how long it is where its content looks like half of a file: when objects that it had are missing,
	// when it does not parse, or when its last line has no end. It is also how long a file is waited for that somebody
	// holds open for writing without writing.
	patience = time.Second
)

// settling knows since when a file has been as it is. It decides when a file is read whole, by what it saw itself and
// by the clock of elapsed time: wall clocks jump, and those of file servers differ.
//
// A file is not read while somebody writes it. Where the system tells who writes (see leased) that is all there is to
// it. Where it does not, because the file is another user's or on another machine, a file that was changed in place is
// read when it has been left alone for a moment; one that was renamed to its place after it was written is read at
// once.
//
// Owned by the goroutine that calls Run.
type settling struct {
	// blind says that the system is not asked who writes. Immutable.
	blind bool

	seen  fs.FileInfo   // what the file inspected like last; nil before the first look
	since time.Time     // since when it has
	need  time.Duration // how long it has to; 0 where nobody can be writing it
	taken fs.FileInfo   // what it inspected like when it was read last
}

// note keeps what a file looks like now.
func (q *settling) note(now fs.FileInfo, at time.Time) {
	if q.seen == nil || !sameState(q.seen, now) {
		q.seen, q.since, q.need = now, at, rest
	}
}

// proves reports whether a file that looks as it does now has done so for long.
func (q *settling) proves(now fs.FileInfo, at time.Time) bool {
	return q.seen != nil && sameState(q.seen, now) && at.Sub(q.since) > fresh
}

// tooSoon reports whether a reading that looks like half of a file has to be made again later.
func (q *settling) tooSoon(at time.Time, half bool) bool {
	if !half || q.need == 0 || at.Sub(q.since) >= patience {
		return false
	}
	q.need = patience
	return true
}

// read reads a file that nobody is writing; finished is false when somebody is, or may be. had says that an empty file
// would be a loss.
func (q *settling) read(path string, at time.Time, had bool) (data []byte, finished bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A pipe would keep us waiting.
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

// moved reports whether a file was put in its place, or had its times set, after it was last written: that is done with
// whole files. One that was there before may have been changed in place since.
func (q *settling) moved(now fs.FileInfo) bool {
	return (q.taken == nil || !os.SameFile(q.taken, now)) && changedAt(now).After(now.ModTime()) && now.Size() > 0
}

// whole reports whether a text without an end of its last line is whole all the same: JSON that ends.
func whole(data []byte) bool {
	text := bytes.TrimSpace(data)
	return len(text) > 1 && (text[0] == '{' && text[len(text)-1] == '}' || text[0] == '[' && text[len(text)-1] == ']')
}

// sameState reports whether a file was left alone between two looks, as far as its size, its times and its identity
// tell.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) &&
		changedAt(a).Equal(changedAt(b))
}
