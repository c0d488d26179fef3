package status

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// Access says who may read the debug pages.
//
// Without a token that is whoever comes from 127.0.0.1 or ::1, to a name that means this machine, without having passed
// a proxy. That is what curl in the pod, "kubectl port-forward", istioctl and "kubectl exec ... request GET" are. Other
// loopback addresses are not enough: where a sidecar captures the pod's traffic, the requests of other pods arrive from
// 127.0.0.6, or from ::6. A request that a proxy has passed on, from whatever address, says so in its headers. The name
// in the Host header, and what a browser says of the page that asks, keep web pages in the operator's browser from
// reading through a port-forward.
type Access struct {
	// Token is a secret that lets its bearer in from everywhere: "Authorization: Bearer TOKEN". None when empty.
	Token string
	// TokenFile is a file with such a secret. It is read at each request that brings a token, so that the secret may be
	// replaced.
	TokenFile string
	// Anywhere lets everybody in.
	Anywhere bool
}

// maxToken is the longest secret, in bytes.
const maxToken = 4 << 10

// guard lets through to h who may read.
func (a Access) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := a.refuse(r); reason != "" {
			http.Error(w, reason, http.StatusForbidden)
			return
		}
		r.Body = http.NoBody // No page reads one, and the parser of forms must not.
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

// refuse says why a request may not read; empty when it may.
func (a Access) refuse(r *http.Request) string {
	if a.Anywhere {
		return ""
	}
	if given, ok := bearer(r); ok {
		if a.knows(given) {
			return ""
		}
		return "the token is not that of the debug pages (see --debugTokenFile)"
	}
	switch remote, err := netip.ParseAddrPort(r.RemoteAddr); {
	case err != nil || !onThisMachine(remote.Addr()):
		return "debug pages are for clients at 127.0.0.1 and ::1, and for those that bring a token (see --debugTokenFile)"
	case forwarded(r):
		return "debug pages are not for requests that passed a proxy; bring a token (see --debugTokenFile)"
	case !local(r.Host):
		return "debug pages answer to localhost, 127.0.0.1 and [::1] alone, not to " + clip(r.Host) +
			"; bring a token (see --debugTokenFile)"
	case foreign(r):
		return "debug pages are not for other web pages"
	}
	return ""
}

// bearer returns the token that a request brings.
func bearer(r *http.Request) (token string, ok bool) {
	kind, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), found && strings.EqualFold(kind, "Bearer")
}

// knows compares a token with the secrets, in a time that says nothing of them.
func (a Access) knows(given string) bool {
	known := false
	for _, secret := range []string{a.Token, a.inFile()} {
		want, got := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(given))
		same := subtle.ConstantTimeCompare(want[:], got[:]) == 1
		known = known || same && secret != ""
	}
	return known
}

// inFile returns the secret in the token file; empty when there is none.
func (a Access) inFile() string {
	if a.TokenFile == "" {
		return ""
	}
	b, err := os.ReadFile(a.TokenFile)
	if err != nil || len(b) > maxToken {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// onThisMachine reports whether an address is the one that processes on this machine have when they connect to it.
func onThisMachine(a netip.Addr) bool {
	a = a.Unmap()
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback()
}

// forwarded reports whether a request's headers say that a proxy passed it on.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		switch {
		case strings.HasPrefix(name, "X-Forwarded-"), strings.HasPrefix(name, "X-Envoy-"),
			strings.HasPrefix(name, "X-B3-"):
			return true
		case name == "Forwarded", name == "Via", name == "X-Real-Ip":
			return true
		}
	}
	return false
}

// local reports whether a Host header names this machine. A name that somebody else's DNS server gives this machine's
// address is no such name.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && onThisMachine(a)
}

// foreign reports whether a browser says that a page from elsewhere asks.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host
}

// clip shortens what a client sent for a message.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}
