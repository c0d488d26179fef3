package jwks

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pilotd/pilotd/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const keySet = `{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"x","y":"y"}]}`

// issuerPages returns a server of good and bad answers.
func issuerPages(base *string) http.Handler {
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	pages := http.NewServeMux()
	pages.HandleFunc("/keys", text(keySet))
	pages.HandleFunc("/none", text(`{"keys":[]}`))
	pages.HandleFunc("/long", text(`{"keys":["`+strings.Repeat("x", ingest.LongestKeySet)+`"]}`))
	pages.HandleFunc("/html", text(`<html>SECRET</html>`))
	pages.Handle("/once", http.RedirectHandler("/keys", http.StatusFound))
	pages.Handle("/round", http.RedirectHandler("/round", http.StatusFound))
	pages.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/keys", http.StatusFound)
	})
	pages.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	pages.HandleFunc("/a/.well-known/openid-configuration",
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"jwks_uri":"` + *base + `/keys"}`))
		})
	pages.HandleFunc("/b/.well-known/openid-configuration", text(`{"jwks_uri":"file:///etc/passwd"}`))
	pages.HandleFunc("/c/.well-known/openid-configuration", text(`{}`))
	return pages
}

// at returns the keys of a place.
func at(ctx context.Context, w *Web, p ingest.KeyPlace) (string, error) {
	if p.URI == "" {
		uri, err := w.URI(ctx, p.Issuer)
		if err != nil {
			return "", err
		}
		p.URI = uri
	}
	return w.Keys(ctx, p.URI)
}

// TestFetch: good keys are read, from a URI and by an issuer's configuration; what is bad, late, too long or leads
// astray is an error, which tells nothing of the answer and is the same each time.
func TestFetch(t *testing.T) {
	var base string
	server := httptest.NewServer(issuerPages(&base))
	defer server.Close()
	base = server.URL
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	web := NewWeb(nil, nil)
	for _, c := range []struct {
		place ingest.KeyPlace
		want  string // part of the error
	}{
		{ingest.KeyPlace{URI: base + "/keys"}, ""},
		{ingest.KeyPlace{URI: base + "/once"}, ""},
		{ingest.KeyPlace{Issuer: base + "/a"}, ""},
		{ingest.KeyPlace{Issuer: base + "/a/"}, ""},
		{ingest.KeyPlace{Issuer: base + "/b"}, "names no keys"},
		{ingest.KeyPlace{Issuer: base + "/c"}, "names no keys"},
		{ingest.KeyPlace{Issuer: base}, "status 404"},
		{ingest.KeyPlace{URI: base + "/none"}, "no public key"},
		{ingest.KeyPlace{URI: base + "/html"}, "no JSON Web Key Set"},
		{ingest.KeyPlace{URI: base + "/long"}, "too long"},
		{ingest.KeyPlace{URI: base + "/round"}, "redirects too often"},
		{ingest.KeyPlace{URI: base + "/missing"}, "status 404"},
		{ingest.KeyPlace{URI: closed}, "the connection is refused"},
		{ingest.KeyPlace{URI: strings.Replace(base, "http:", "https:", 1)}, "the connection failed"},
		{ingest.KeyPlace{URI: "http://169.254.169.254/latest"}, "may not be asked"},
		{ingest.KeyPlace{URI: "http://[fe80::1%25lo]/latest"}, "may not be asked"},
		{ingest.KeyPlace{URI: "http://[::ffff:169.254.169.254]/latest"}, "may not be asked"},
		{ingest.KeyPlace{URI: "http://[64:ff9b::a9fe:a9fe]/latest"}, "may not be asked"},
		{ingest.KeyPlace{URI: "http://[2002:a9fe:a9fe::1]/latest"}, "may not be asked"},
	} {
		keys, err := at(t.Context(), web, c.place)
		if c.want == "" && (err != nil || keys != keySet) ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET")) {
			t.Errorf("%v: %q, %v, want %q", c.place, keys, err, c.want)
		}
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := web.Keys(short, base+"/never"); err == nil ||
		!strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("a server that never answers: %v", err)
	}
	local := NewWeb([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)
	if _, err := local.URI(t.Context(), base+"/a"); err == nil ||
		!strings.Contains(err.Error(), "may not be asked") {
		t.Errorf("an address that is blocked: %v", err)
	}
}

// TestFetchTLS: the server's certificate must be trusted, and a redirect never leaves TLS.
func TestFetchTLS(t *testing.T) {
	server := httptest.NewTLSServer(issuerPages(new(string)))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	trusting, stranger := NewWeb(nil, roots), NewWeb(nil, x509.NewCertPool())
	at := func(path string) string { return server.URL + path }
	if keys, err := trusting.Keys(t.Context(), at("/keys")); err != nil || keys != keySet {
		t.Errorf("%q, %v", keys, err)
	}
	if _, err := trusting.Keys(t.Context(), at("/plain")); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("out of TLS: %v", err)
	}
	if _, err := stranger.Keys(t.Context(), at("/keys")); err == nil || !strings.Contains(err.Error(), "not trusted") {
		t.Errorf("a certificate of nobody: %v", err)
	}
}
