package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/pilotd/pilotd/cmd/pilotd/discovery"
	"github.com/pilotd/pilotd/ingest/jwks"
)

// keyOptions are the settings for fetching the keys of token issuers.
type keyOptions struct {
	refresh time.Duration
	blocked []netip.Prefix
	roots   *x509.CertPool
}

// moreRoots is a file with more root certificates for issuers' servers, at the path that istiod uses.
const moreRoots = "/cacerts/extra.pem"

// environment reads istiod's variables for these settings, and moreRoots.
func (o *keyOptions) environment() (err error) {
	if v := os.Getenv("PILOT_JWT_PUB_KEY_REFRESH_INTERVAL"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < time.Second {
			return fmt.Errorf("environment variable PILOT_JWT_PUB_KEY_REFRESH_INTERVAL=%q: want 1s or more", v)
		}
		o.refresh = d
	}
	if v := os.Getenv("BLOCKED_CIDRS_IN_JWKS_URIS"); v != "" {
		for one := range strings.SplitSeq(v, ",") {
			p, err := netip.ParsePrefix(strings.TrimSpace(one))
			if err != nil {
				return fmt.Errorf("environment variable BLOCKED_CIDRS_IN_JWKS_URIS=%q: want ranges such as 10.0.0.0/8,fd00::/8", v)
			}
			o.blocked = append(o.blocked, p.Masked())
		}
	}
	o.roots, err = issuerRoots()
	return err
}

// issuerRoots returns the system's roots and moreRoots; nil, which means the system's, if there are no more.
func issuerRoots() (*x509.CertPool, error) {
	pem, err := os.ReadFile(moreRoots)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: want certificates as PEM", moreRoots)
	}
	return pool, nil
}

// newKeys returns the source of the keys of token issuers.
func newKeys(o *options, server *discovery.Server, log *slog.Logger) source {
	web := jwks.NewWeb(o.blocked, o.roots)
	f := jwks.New(server.Store, jwks.Options{URI: web.URI, Keys: web.Keys, Refresh: o.refresh,
		Log: log.With(scopeKey, "keys")})
	server.Metrics.Counter("pilot_jwks_resolver_network_fetch_success_total",
		"Fetches of the keys of tokens' issuers that were good.",
		func() float64 { good, _ := f.Counts(); return float64(good) })
	server.Metrics.Counter("pilot_jwks_resolver_network_fetch_fail_total",
		"Fetches of the keys of tokens' issuers that failed.",
		func() float64 { _, failed := f.Counts(); return float64(failed) })
	return f
}
