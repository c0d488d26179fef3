package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Time limits of Probe: how long one connection may take, and the pause after one that failed.
const (
	probeTime  = time.Second
	probePause = 250 * time.Millisecond
)

// ErrNotCaptured reports that traffic does not reach the proxy.
var ErrNotCaptured = errors.New("traffic of the pod is not captured")

// Probe checks whether connections to an address are redirected to the proxy, whoever has written the rules: it listens
// on the proxy's ports itself, and connects to the address until it reaches one of its own listeners or ctx ends.
func Probe(ctx context.Context, to netip.AddrPort, proxy ...uint16) error {
	var work sync.WaitGroup
	defer work.Wait()
	for _, port := range proxy {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(int(port)))
		if err != nil {
			return fmt.Errorf("in the proxy's place: %w", err)
		}
		defer l.Close()
		work.Go(func() { sayPort(l, port) })
	}
	again := time.NewTicker(probePause)
	defer again.Stop()
	var why error
	for {
		err := meet(ctx, to, proxy)
		if err == nil {
			return nil
		}
		if late := net.Error(nil); why == nil || !errors.As(err, &late) || !late.Timeout() {
			why = err // the error of the last attempt says more than that the time is over
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: a connection to %s: %w", ErrNotCaptured, to, why)
		}
	}
}

// sayPort writes the port number to every connection that l accepts, until l is closed.
func sayPort(l net.Listener, port uint16) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(probeTime))
		_, _ = io.WriteString(c, strconv.Itoa(int(port)))
		c.Close()
	}
}

// meet connects once, and returns nil if the connection ended at one of the proxy's ports.
func meet(ctx context.Context, to netip.AddrPort, proxy []uint16) error {
	d := net.Dialer{Timeout: probeTime}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(probeTime))
	said, err := io.ReadAll(io.LimitReader(c, 16))
	if err != nil {
		return err
	}
	for _, port := range proxy {
		if string(said) == strconv.Itoa(int(port)) {
			return nil
		}
	}
	return errors.New("somebody else answers")
}
