package secure

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotd/pilotd/xdstype"
)

// hidden is a key in the forms in which memory may have it, each under a mask, so that the test itself has none.
type hidden [][]byte

const mask = 0x5a

func masked(b []byte) []byte {
	out := bytes.Clone(b)
	for i := range out {
		out[i] ^= mask
	}
	return out
}

// hide gives a Secret another key, and remembers nothing of that but its forms.
func (h *house) hide(namespace, name string) (out hidden) {
	h.t.Helper()
	c := h.root.client(h.t, "spiffe://cluster.local/ns/x/sa/"+name, 1000*time.Hour)
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		h.t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	private := scalar(h.t, c.PrivateKey.(*ecdsa.PrivateKey))
	for _, secret := range [][]byte{key[93:133], private} {
		for _, form := range forms(secret) {
			out = append(out, masked(form))
		}
	}
	reversed := bytes.Clone(private) // words of a number, least first
	for i, b := range private {
		reversed[len(private)-1-i] = b
	}
	g := gate{house: h}
	g.put(namespace, name, map[string][]byte{"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: c.Certificate[0]}), "tls.key": key, "ca.crt": h.root.pem})
	return append(out, masked(reversed))
}

// inMemory returns how often the live objects of the process have a key, by the forms of each.
func (h *house) inMemory(keys ...hidden) []int {
	h.t.Helper()
	synctest.Wait()
	for range 3 { // pools of buffers let go of theirs in two rounds
		runtime.GC()
	}
	path := filepath.Join(h.t.TempDir(), "heap")
	f, err := os.Create(path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	debug.WriteHeapDump(f.Fd())
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		h.t.Fatal(err)
	}
	found := make([]int, len(keys))
	const overlap = 512 // more than the longest form has
	r, window := bufio.NewReader(f), make([]byte, 0, 1<<20)
	for {
		n, err := io.ReadFull(r, window[len(window):cap(window)])
		fresh := window[len(window) : len(window)+n]
		for i := range fresh {
			fresh[i] ^= mask
		}
		window = window[:len(window)+n]
		for i, key := range keys {
			for _, form := range key {
				found[i] += bytes.Count(window, form)
			}
		}
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				h.t.Fatal(err)
			}
			return found
		}
		window = window[:copy(window[:overlap], window[len(window)-overlap:])]
	}
}

// A private key is in memory while its Secret is there, and nowhere in it when the Secret has another key or is gone,
// and the connections by which it was sent have ended.
func TestKeysLeaveMemory(t *testing.T) {
	inHouse(t, func(h *house) {
		first := h.hide("shop", "a")
		s := h.stream(&agent{cert: h.root.client(t, "spiffe://cluster.local/ns/shop/sa/lister", 1000*time.Hour)},
			node("router", "shop", "lister"), false)
		got := make(chan string, 10)
		go func() {
			for {
				r, err := s.recv()
				if err != nil || s.answer(r, false) != nil {
					close(got)
					return
				}
				if r.TypeUrl != xdstype.SecretURL {
					continue
				}
				for _, resource := range r.Resources {
					got <- resource.Name
				}
				for _, name := range r.RemovedResources {
					got <- "not " + name
				}
			}
		}()
		s.subscribe([]string{"kubernetes://a"}, nil)
		step := func(what, told string, want []bool, keys ...hidden) {
			t.Helper()
			if told != "" {
				if name := <-got; name != told {
					t.Errorf("%s: the gateway is told of %q, want %q", what, name, told)
				}
			}
			for i, n := range h.inMemory(keys...) {
				if (n > 0) != want[i] {
					t.Errorf("%s: key %d is in memory %d times, want it there: %v", what, i, n, want[i])
				}
			}
		}
		step("sent", "kubernetes://a", []bool{true}, first)
		second := h.hide("shop", "a")
		if name := <-got; name != "kubernetes://a" {
			t.Errorf("the gateway is told of %q", name)
		}
		s.close() // its connection may have the last bytes that went over it
		step("another key", "", []bool{false, true}, first, second)
		(&gate{house: h}).put("shop", "a", nil)
		step("deleted", "", []bool{false, false}, first, second)
	}, func(h *house) { h.rights = newGrants("shop/lister") })
}
