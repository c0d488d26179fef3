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

// Times of a Probe: how long one connection may take, and how long after one that failed the next is tried.
const (
	probeTime  = time.Second
	probePause = 250 * time.Millisecond
)

// ErrNotCaptured says that traffic does not go to the proxy.
var ErrNotCaptured = errors.New("traffic of the pod is not captured")

// Probe finds out whether rules, whoever has written them, send connections to an address to the proxy: it listens in
// the proxy's place at those of its ports that it is given, and connects until it meets itself or ctx ends.
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
			why = err // that the time is over says less
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: a connection to %s: %w", ErrNotCaptured, to, why)
		}
	}
}

// sayPort says to everybody which port it is, until l is closed.
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

// meet returns nil if a connection ends at one of the ports.
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
