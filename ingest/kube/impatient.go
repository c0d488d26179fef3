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
	// silence is how long a server may send nothing in answer to a list. A watch may be silent this much longer than
	// the time it was asked for.
	silence = 30 * time.Second
	// maxAnswer bounds the size in bytes of an answer that is not a watch.
	maxAnswer = 1 << 30
)

// impatient is an http.RoundTripper that cancels requests without an answer, so that callers retry: a server may accept
// connections and then hang. Immutable.
type impatient struct {
	next    http.RoundTripper
	silence time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	a := &answer{first: t.silence, each: t.silence, left: maxAnswer, cancel: cancel, ctx: ctx}
	if q := r.URL.Query(); q.Get("watch") != "" {
		// The reflector asks for at least 5 minutes; 0 means the server's own limit.
		asked, _ := strconv.Atoi(q.Get("timeoutSeconds"))
		a.each, a.left = max(time.Duration(asked)*time.Second, 10*time.Minute)+t.silence, -1
		if q.Get("sendInitialEvents") != "true" {
			a.first = a.each // proxies may forward nothing before the first event
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

// CloseIdleConnections implements what http.Client expects.
func (t impatient) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// WrappedRoundTripper returns the inner transport.
func (t impatient) WrappedRoundTripper() http.RoundTripper { return t.next }

// answer is a response body whose reads fail after too long a silence.
type answer struct {
	// Immutable after RoundTrip.
	body        io.ReadCloser
	timer       *time.Timer
	cancel      context.CancelCauseFunc
	ctx         context.Context
	first, each time.Duration

	// Owned by the reader.
	left int64 // bytes that may still come; negative means no limit
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

// cause returns the reason why impatient cancelled the request, if it did, or err.
func (a *answer) cause(err error) error {
	if why := context.Cause(a.ctx); a.ctx.Err() != nil && why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}
