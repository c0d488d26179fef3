package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leased runs read while no process can open f for writing: with a read lease, which the kernel grants only while
// nobody has the file open for writing. A writer that comes meanwhile waits for the release. writing says that somebody
// writes now, and read was not run; known is false where the kernel grants no leases (another user's file, some network
// file systems), and read was not run either.
func leased(f *os.File, read func()) (writing, known bool) {
	fd := f.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EAGAIN)
	}
	read()
	_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	return false, true
}

// changedAt returns when a file was last written, renamed, or given other times or rights.
func changedAt(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return info.ModTime()
}

// linked reports whether a file has other names, under which it may be written.
func linked(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink > 1
}
