package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pilotd/pilotd/agent/dns"
)

// resolvConf is the file that names the pod's DNS servers.
const resolvConf = "/etc/resolv.conf"

// dnsPort is the port that the capture rules redirect queries to.
const dnsPort = "15053"

// errNoNames is the reason for unreadiness until the first name table has come.
var errNoNames = errors.New("the control plane has sent no names yet")

// makeNames creates the DNS proxy if the pod's queries are captured.
func (a *agent) makeNames() error {
	e := a.pod.Env
	if !e.Bool("ISTIO_META_DNS_CAPTURE", false) && !e.Bool("ISTIO_META_ENABLE_DNS_SERVER", false) &&
		!e.Bool("ENABLE_DNS_SERVER", false) {
		return nil
	}
	if text := e.Text("DNS_PROXY_ADDR", ""); text != "" {
		if _, _, err := net.SplitHostPort(text); err != nil {
			return fmt.Errorf("environment variable DNS_PROXY_ADDR=%q: want host:port", text)
		}
		a.nameAddresses = []string{text}
	} else {
		if !a.pod.IPv6Only() {
			a.nameAddresses = append(a.nameAddresses, "127.0.0.1:"+dnsPort)
		}
		if a.pod.IPv6Only() || a.pod.DualStack() {
			a.nameAddresses = append(a.nameAddresses, "[::1]:"+dnsPort)
		}
	}
	log := a.log.With("scope", "dns")
	a.resolver = &dns.Resolver{Path: resolvConf, Not: a.nameAddresses, AllAtOnce: e.Bool("DNS_FORWARD_PARALLEL", false),
		Log: log}
	a.names = dns.New(dns.DomainOf(a.pod.Namespace, a.pod.Domain), a.resolver, log)
	return nil
}

// listenNames opens the ports of the DNS proxy. The returned function closes them.
func (a *agent) listenNames(ctx context.Context) (func(), error) {
	if a.names == nil {
		return func() {}, nil
	}
	if err := a.resolver.Read(); err != nil {
		return nil, fmt.Errorf("DNS: %w", err)
	}
	stop, err := a.names.Listen(a.nameAddresses...)
	if err != nil {
		return nil, err
	}
	a.work.Go(func() {
		tick := time.NewTicker(filesEvery)
		defer tick.Stop()
		a.resolver.Run(ctx, tick.C)
	})
	return stop, nil
}

// hasNames returns an error while the DNS proxy waits for its first name table.
func (a *agent) hasNames() error {
	if a.names != nil && !a.names.Ready() {
		return errNoNames
	}
	return nil
}
