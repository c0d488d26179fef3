package fleet

import (
	"net"
	"path/filepath"

	"google.golang.org/grpc/test/bufconn"
)

// Transport is a listener for a server, and how clients connect to it.
type Transport struct {
	net.Listener
	Dial func() (net.Conn, error)
}

// Memory returns a transport within the process.
func Memory() Transport {
	l := bufconn.Listen(64 << 10)
	return Transport{Listener: l, Dial: l.Dial}
}

// Loopback returns a transport over TCP on 127.0.0.1.
func Loopback() (Transport, error) { return listen("tcp", "127.0.0.1:0") }

// Unix returns a socket in dir.
func Unix(dir string) (Transport, error) { return listen("unix", filepath.Join(dir, "xds")) }

func listen(network, address string) (Transport, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return Transport{}, err
	}
	return Transport{Listener: l, Dial: func() (net.Conn, error) { return net.Dial(network, l.Addr().String()) }}, nil
}
