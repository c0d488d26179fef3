package main

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds on connections to the status pages, which anyone can open.
const (
	pageHeaderTime = 10 * time.Second // to send the header of a request
	pageReadTime   = 20 * time.Second // to send the whole request
	// pageWriteTime bounds making a page and reading it. A profile with a duration has that much more.
	pageWriteTime   = 2 * time.Minute
	pageIdleTime    = time.Minute // between requests
	pageHeaderBytes = 16 << 10
	// pageConnections bounds the connections. A new connection closes the oldest one, so that a client with many
	// connections cannot keep a probe out.
	pageConnections = 256
)

// webServer is one listener with the status pages.
type webServer struct {
	listener net.Listener
	server   *http.Server
}

func (w *webServer) run() error {
	if err := w.server.Serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func listenHTTP(o *options, pages http.Handler, log *slog.Logger) ([]*webServer, error) {
	var out []*webServer
	for _, a := range []struct{ flag, addr string }{{"--httpAddr", o.httpAddr},
		{"--monitoringAddr", o.monitoringAddr}} {
		l, err := listen(a.flag, a.addr)
		if err != nil {
			return nil, err
		}
		if l != nil {
			out = append(out, &webServer{l, newPageServer(pages, log)})
		}
	}
	return out, nil
}

// newPageServer returns the HTTP server of one address.
func newPageServer(pages http.Handler, log *slog.Logger) *http.Server {
	crowd := &crowd{most: pageConnections, order: list.New(), places: map[net.Conn]*list.Element{}}
	return &http.Server{
		Handler: pages, ReadHeaderTimeout: pageHeaderTime, ReadTimeout: pageReadTime, WriteTimeout: pageWriteTime,
		IdleTimeout:    pageIdleTime,
		MaxHeaderBytes: pageHeaderBytes, ConnState: crowd.changed,
		ErrorLog: slog.NewLogLogger(log.With(scopeKey, "http").Handler(), slog.LevelWarn),
	}
}

// crowd bounds the connections of a server: if there are too many, it closes the oldest.
type crowd struct {
	// Immutable.
	most int

	mu sync.Mutex
	// Guarded by mu.
	order  *list.List // of net.Conn, the oldest first
	places map[net.Conn]*list.Element
}

// changed is the server's callback for the state of a connection.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.places[conn] = c.order.PushBack(conn)
		if c.order.Len() > c.most {
			c.leave(c.order.Front()).Close()
		}
	case http.StateClosed, http.StateHijacked:
		if e, ok := c.places[conn]; ok {
			c.leave(e)
		}
	}
}

// leave removes a connection. The caller holds mu.
func (c *crowd) leave(e *list.Element) net.Conn {
	conn := c.order.Remove(e).(net.Conn)
	delete(c.places, conn)
	return conn
}
