// Command apiserver is a whole Kubernetes API in one process, for tests: the real
// kube-apiserver on an embedded etcd.
//
//	apiserver --dir DIR [--audit]
//
// It owns DIR: etcd's data, the keys that it makes, and DIR/kubeconfig, which gives
// an administrator's rights. Two lines are printed on standard output: "etcd URL", the
// address of the store, for tests that fill it past the API, and "ready KUBECONFIG" when
// /readyz says ok. With --audit DIR/audit.log has a line for each request: who asked for what, and the answer. It lives as long as its standard input is open (so it
// never outlives the test that started it) and ends on SIGTERM and SIGINT too.
//
// It is a module of its own, so that the product does not depend on k8s.io/kubernetes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	dir := flag.String("dir", "", "directory for all files of this server")
	audit := flag.Bool("audit", false, "write audit.log")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *dir, *audit); err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}

// run starts etcd and kube-apiserver and returns when either fails, when ctx ends or
// when standard input is closed. The process is to exit then: kube-apiserver has no
// other end that is quick.
func run(ctx context.Context, dir string, audit bool) error {
	if dir == "" {
		return errors.New("--dir is required")
	}
	etcd, err := startEtcd(dir)
	if err != nil {
		return err
	}
	defer etcd.Close()

	store := etcd.Config().AdvertiseClientUrls[0].String()
	fmt.Println("etcd", store)
	api, err := newKubeAPI(dir, store, audit)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- api.run() }()
	go func() { failed <- api.announce(ctx) }()
	parentGone := make(chan struct{})
	go func() {
		defer close(parentGone)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	for {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
		case <-parentGone:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// freePort returns a loopback port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
