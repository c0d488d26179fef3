package jwks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pilotd/pilotd/ingest"
)

// Bounds of one request.
const (
	maxRedirects   = 3
	maxHeaderBytes = 16 << 10
	// maxConfiguration is the largest OpenID configuration, in bytes.
	maxConfiguration = 64 << 10
)

// Web fetches keys over HTTP and HTTPS. Safe for concurrent use.
type Web struct {
	// Immutable after NewWeb.
	client *http.Client
}

// errBlocked reports an address that may not be requested.
var errBlocked = errors.New("its address may not be asked")

// errRedirects reports too many redirects, or one from https to http.
var errRedirects = errors.New("it redirects too often, or from https to http")

// NewWeb makes a Web that refuses the blocked addresses and, in any case, link-local addresses and those of cloud
// metadata services. It verifies servers with these roots; nil means the system's roots.
func NewWeb(blocked []netip.Prefix, roots *x509.CertPool) *Web {
	for _, p := range []string{"169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32"} {
		blocked = append(slices.Clone(blocked), netip.MustParsePrefix(p))
	}
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		for _, addr := range reached(to.Addr().Unmap().WithZone("")) {
			if slices.ContainsFunc(blocked, func(p netip.Prefix) bool { return p.Contains(addr) }) {
				return errBlocked
			}
		}
		return nil
	}}
	return &Web{client: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: maxHeaderBytes, DisableKeepAlives: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
				return errRedirects
			}
			return nil
		},
	}}
}

// reached returns the addresses that are reached by asking one: itself and, where it has the prefix of NAT64 or of
// 6to4, the IPv4 address that gateways of these take out of it.
func reached(addr netip.Addr) []netip.Addr {
	b := addr.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
		return []netip.Addr{addr, netip.AddrFrom4([4]byte(b[12:]))}
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return []netip.Addr{addr, netip.AddrFrom4([4]byte(b[2:6]))}
	}
	return []netip.Addr{addr}
}

// URI returns where an issuer's keys are, as its OpenID configuration says. For its error the same holds as for Keys.
func (w *Web) URI(ctx context.Context, issuer string) (string, error) {
	at := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	body, err := w.get(ctx, at, maxConfiguration)
	if err != nil {
		return "", fmt.Errorf("the issuer's OpenID configuration at %s cannot be fetched: %w", shown(at), reason(err))
	}
	uri := keysURI(body)
	if uri == "" {
		return "", fmt.Errorf("the issuer's OpenID configuration at %s names no keys", shown(at))
	}
	return uri, nil
}

// Keys returns the key set at a URI, in the form of ingest.ReadKeySet. The text of its error is the same for repeated
// failures, and contains nothing of the answer.
func (w *Web) Keys(ctx context.Context, uri string) (string, error) {
	body, err := w.get(ctx, uri, ingest.LongestKeySet)
	if err != nil {
		return "", fmt.Errorf("the keys at %s cannot be fetched: %w", shown(uri), reason(err))
	}
	keys, err := ingest.ReadKeySet(body)
	if err != nil {
		return "", fmt.Errorf("the keys at %s cannot be used: %w", shown(uri), err)
	}
	return keys, nil
}

// keysURI returns the URI of the keys that an OpenID configuration names, or nothing if that is not a URL.
func keysURI(configuration []byte) string {
	var says struct {
		Keys string `json:"jwks_uri"`
	}
	if json.Unmarshal(configuration, &says) != nil {
		return ""
	}
	u, err := url.Parse(says.Keys)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return says.Keys
}

// shown returns a URI without its password.
func shown(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "a URI that cannot be read"
	}
	return u.Redacted()
}

// errTooLong reports an answer that is too large.
var errTooLong = errors.New("it is too long")

// statusError is an HTTP status that is not a success.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the answer is status %d", int(e)) }

func (w *Web) get(ctx context.Context, uri string, most int) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, statusError(answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if err == nil && len(body) > most {
		err = errTooLong
	}
	return body, err
}

// reason returns an error without the parts that differ each time, such as ports.
func reason(err error) error {
	var status statusError
	var name *net.DNSError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(err, errBlocked), errors.Is(err, errRedirects), errors.Is(err, errTooLong):
		for _, known := range []error{errBlocked, errRedirects, errTooLong} {
			if errors.Is(err, known) {
				return known
			}
		}
	case errors.As(err, &status):
		return status
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("there is no answer in time")
	case errors.As(err, &name):
		return errors.New("the name of its host is not found")
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		return errors.New("its certificate is not trusted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the connection is refused")
	}
	return errors.New("the connection failed")
}

// DefaultTime is the time limit of a fetch for which no object sets one.
const DefaultTime = 5 * time.Second

// longestTime is the upper bound of the time limits that objects set.
const longestTime = 30 * time.Second
