package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leased runs read under a read lease of f, so that no process can open f for writing meanwhile: a process that tries
// waits until the lease is released. The kernel grants the lease only if no process has the file open for writing. If
// one has, writing is true and read is not run. If the kernel grants no leases on this file (it belongs to another
// user, or to some network file systems), known is false and read is not run either.
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
