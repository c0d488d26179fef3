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
// Without a token these are requests that come from 127.0.0.1 or ::1, ask for a host name that means this machine, and
// have not passed a proxy. Requests by curl in the pod, "kubectl port-forward", istioctl and "kubectl exec ... request
// GET" meet these conditions. Other loopback addresses do not count: where a sidecar captures the pod's traffic,
// requests of other pods arrive from 127.0.0.6, or from ::6. A request that a proxy has forwarded, from whatever
// address, says so in its headers. The Host header, and the headers in which a browser names the requesting page, keep
// web pages in the operator's browser from reading through a port-forward.
type Access struct {
	// Token is a secret; a request with "Authorization: Bearer TOKEN" may read from anywhere. Empty means none.
	Token string
	// TokenFile is a file with such a secret. It is read for each request that has a token, so the secret can be
	// replaced.
	TokenFile string
	// Anywhere lets everyone read.
	Anywhere bool
}

// maxToken is the longest secret, in bytes.
const maxToken = 4 << 10

// guard passes on to h those requests that may read.
func (a Access) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := a.refuse(r); reason != "" {
			http.Error(w, reason, http.StatusForbidden)
			return
		}
		r.Body = http.NoBody // no page reads the body, and the form parser must not
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

// refuse returns the reason why a request may not read; empty if it may.
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

// bearer returns the token of a request.
func bearer(r *http.Request) (token string, ok bool) {
	kind, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), found && strings.EqualFold(kind, "Bearer")
}

// knows compares a token with the secrets in constant time.
func (a Access) knows(given string) bool {
	known := false
	for _, secret := range []string{a.Token, a.inFile()} {
		want, got := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(given))
		same := subtle.ConstantTimeCompare(want[:], got[:]) == 1
		known = known || same && secret != ""
	}
	return known
}

// inFile returns the secret in the token file; empty if there is none.
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

// onThisMachine reports whether an address is one from which processes on this machine connect to it.
func onThisMachine(a netip.Addr) bool {
	a = a.Unmap()
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback()
}

// forwarded reports whether a request's headers say that a proxy forwarded it.
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

// local reports whether a Host header names this machine. Another name does not count even if DNS resolves it to this
// machine's address, because an attacker may control that DNS server.
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

// foreign reports whether the browser says that a page from another site sent the request.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host
}

// clip shortens a client's text for a message.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}
