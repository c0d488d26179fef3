package main

import (
	"fmt"
	"net"
	"net/http"
)

// startEcho serves HTTP on addr and answers everything with name.
func startEcho(name, addr string) (*http.Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, name)
	})}
	go func() { _ = server.Serve(l) }()
	return server, nil
}
