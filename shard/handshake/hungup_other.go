//go:build !linux

package handshake

import "net"

// hungUp reports false: only Linux tells.
func hungUp(net.Conn) bool { return false }
