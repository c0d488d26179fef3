package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// silence is how long a server may say nothing to a request for a list. A watch may be silent for as long as it was
	// asked for, and this.
	silence = 30 * time.Second
	// maxAnswer bounds the answer to a request that is no watch, in bytes.
	maxAnswer = 1 << 30
)

// impatient ends requests that are not answered, so that they are made again: a server may accept connections and then
// hang. Immutable.
type impatient struct {
	next    http.RoundTripper
	silence time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	a := &answer{first: t.silence, each: t.silence, left: maxAnswer, cancel: cancel, ctx: ctx}
	if q := r.URL.Query(); q.Get("watch") != "" {
		// The reflector asks for 5 minutes and more; 0 is a server's own limit.
		asked, _ := strconv.Atoi(q.Get("timeoutSeconds"))
		a.each, a.left = max(time.Duration(asked)*time.Second, 10*time.Minute)+t.silence, -1
		if q.Get("sendInitialEvents") != "true" {
			a.first = a.each // Proxies may pass nothing on before the first event.
		}
	}
	a.timer = time.AfterFunc(a.first, func() { cancel(fmt.Errorf("the server did not answer within %v", a.first)) })
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		a.timer.Stop()
		err = a.cause(err)
		cancel(nil)
		return nil, err
	}
	a.body = resp.Body
	resp.Body = a
	return resp, nil
}

// CloseIdleConnections passes on what http.Client asks for.
func (t impatient) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// WrappedRoundTripper returns the transport below.
func (t impatient) WrappedRoundTripper() http.RoundTripper { return t.next }

// answer is a response's body that may not be silent for long.
type answer struct {
	// Immutable after RoundTrip.
	body        io.ReadCloser
	timer       *time.Timer
	cancel      context.CancelCauseFunc
	ctx         context.Context
	first, each time.Duration

	// Owned by the reader.
	left int64 // bytes that may come still; negative is without bound
	read bool
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if n > 0 && (!a.read || a.left >= 0) {
		a.read = true
		a.timer.Reset(a.each)
	}
	if a.left >= 0 {
		if a.left -= int64(n); a.left < 0 {
			return n, fmt.Errorf("the server's answer does not end: it has more than %d bytes", int64(maxAnswer))
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.cause(err)
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	a.timer.Stop()
	a.cancel(nil)
	return a.body.Close()
}

// cause returns why the request was ended, if it was.
func (a *answer) cause(err error) error {
	if why := context.Cause(a.ctx); a.ctx.Err() != nil && why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}
