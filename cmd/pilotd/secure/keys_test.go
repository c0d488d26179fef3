package secure

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilotd/pilotd/status"
	"github.com/pilotd/pilotd/xdstype"
)

// forms are the ways in which a secret may be written: as it is, in hexadecimal, in base64 at any place of three, and
// as Go prints bytes.
func forms(secret []byte) (out [][]byte) {
	out = append(out, secret, []byte(hex.EncodeToString(secret)), []byte(strings.ToUpper(hex.EncodeToString(secret))),
		[]byte(strings.Trim(fmt.Sprint(secret), "[]")))
	for skip := range 3 {
		whole := secret[skip:]
		whole = whole[:len(whole)/3*3]
		out = append(out, []byte(base64.StdEncoding.EncodeToString(whole)))
	}
	return out
}

// scalar returns the private part of a key.
func scalar(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	b, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// No key of an authority, no serving key and no token is in what pilotd writes or shows of itself, whatever went wrong
// before: log, pages, metrics, profiles, answers.
func TestKeysAreNowhere(t *testing.T) {
	inHouse(t, func(h *house) {
		const token = "eyJ-a-token-that-nobody-should-see"
		h.tokens[token] = "system:serviceaccount:shop:web"
		web := node("sidecar", "shop", "web")
		stays := h.open(token, agent{})
		defer stays.close()
		stays.send(&discoveryv3.DeltaDiscoveryRequest{Node: web, TypeUrl: xdstype.ClusterURL})
		stays.next(xdstype.ClusterURL)
		conn := h.dial(agent{})
		defer conn.Close()
		chain, err := certificate(conn, with(token), csr(h.t, newKey(h.t), "spiffe://cluster.local/ns/shop/sa/web"))
		if err != nil {
			h.t.Fatal(err)
		}
		secrets := map[string][]byte{"token": []byte(token), "stolen token": []byte("stolen-" + token),
			"authority": scalar(h.t, h.root.key)}
		serving, err := h.secure.serving.Get(nil)
		if err != nil {
			h.t.Fatal(err)
		}
		secrets["serving"] = scalar(h.t, serving.PrivateKey.(*ecdsa.PrivateKey))
		if _, err := certificate(conn, with("stolen-"+token), "x"); err == nil {
			h.t.Error("a stolen token is good")
		} else {
			chain = append(chain, err.Error())
		}
		// Material that is wrong in every way, with the key in it.
		key, err := os.ReadFile(filepath.Join(h.dir, "ca-key.pem"))
		if err != nil {
			h.t.Fatal(err)
		}
		b, _ := pem.Decode(key)
		for _, bad := range []map[string]string{
			{"ca-key.pem": string(key[:len(key)/2])}, {"ca-cert.pem": string(key)}, {"root-cert.pem": string(key)},
			{"ca-key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b.Bytes}))},
			{"ca-key.pem": string(pem.EncodeToMemory(&pem.Block{Type: string(b.Bytes), Bytes: b.Bytes}))},
		} {
			for name, text := range bad {
				if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
					h.t.Fatal(err)
				}
			}
			h.tick <- time.Time{}
			synctest.Wait()
			if h.secure.Keeper.Problem() == nil {
				h.t.Error("it is taken:", bad)
			}
			chain = append(chain, h.secure.Waiting(), fmt.Sprintf("%v %+v %#v", h.secure.Keeper.Authority(),
				h.secure.Keeper.Authority(), h.secure.Keeper.Authority()), h.secure.Keeper.Problem().Error())
			h.plug(h.root, h.root.pem)
		}
		shown := map[string][]byte{"log": h.log.Bytes(), "answers": []byte(strings.Join(chain, "\n"))}
		pages := status.Handler(h.streams.Metrics, status.Pages{Debug: h.streams.Pages(),
			Ready:  func() (bool, string) { return false, h.secure.Waiting() },
			Access: status.Access{Anywhere: true}, Log: slog.New(slog.DiscardHandler)})
		for _, page := range []string{"/ready", "/metrics", "/debug/syncz", "/debug/registryz", "/debug/endpointz",
			"/debug/rejectionsz", "/debug/shardz", "/debug/config_dump?proxyID=" + web.Id} {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequest("GET", page, nil))
			if shown[page] = w.Body.Bytes(); w.Body.Len() == 0 {
				h.t.Errorf("%s is empty", page)
			}
		}
		for _, p := range pprof.Profiles() {
			for _, debug := range []int{0, 2} {
				var w bytes.Buffer
				if err := p.WriteTo(&w, debug); err != nil {
					h.t.Fatal(err)
				}
				shown[fmt.Sprint("profile ", p.Name(), debug)] = w.Bytes()
			}
		}
		if !bytes.Contains(shown["log"], []byte("certificate authority")) || len(shown["/metrics"]) < 1000 {
			h.t.Error("there is little to be seen: ", len(shown["log"]), len(shown["/metrics"]))
		}
		for place, text := range shown {
			for name, secret := range secrets {
				for _, form := range forms(secret) {
					if bytes.Contains(text, form) {
						h.t.Errorf("the key or token %q is in: %s", name, place)
					}
				}
			}
		}
	})
}
