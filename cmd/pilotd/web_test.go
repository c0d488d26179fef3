package main

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// servePages returns a page server on a listener in memory, until the test ends.
func servePages(t *testing.T) func() net.Conn {
	t.Helper()
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	lis, server := bufconn.Listen(1<<16), newPageServer(pages, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(lis) }()
	t.Cleanup(func() { server.Close(); <-done })
	return func() net.Conn {
		conn, err := lis.Dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

// Connections that ask nothing, ask slowly, or ask no more are closed.
func TestIdlePageConnectionsAreClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		says  string
		after time.Duration
	}{
		"says nothing":          {"", pageHeaderTime},
		"does not end":          {"GET / HTTP/1.1\r\nHost: a\r\n", pageHeaderTime},
		"does not end its body": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx", pageReadTime},
		"asks no more":          {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", pageIdleTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, begin := servePages(t)(), time.Now()
				go func() { _, _ = io.WriteString(conn, tc.says) }()
				_, _ = io.ReadAll(conn)
				if d := time.Since(begin); d > tc.after+time.Second {
					t.Errorf("closed after %v, want %v", d, tc.after)
				}
			})
		})
	}
}

// Somebody who opens connections without end keeps no probe out.
func TestManyPageConnectionsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := servePages(t)
		var held []net.Conn
		for range pageConnections + 10 {
			held = append(held, dial())
			synctest.Wait()
		}
		conn := dial()
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Error(line, err)
		}
		open := 0
		for _, c := range held {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				open++
			}
		}
		if open > pageConnections {
			t.Errorf("%d connections are open, want at most %d", open, pageConnections)
		}
	})
}
