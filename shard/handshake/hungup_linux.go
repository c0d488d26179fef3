package handshake

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the client has closed the connection, even if unread data is left.
func hungUp(conn net.Conn) (gone bool) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(poll, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}
