package ingest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// LongestKeySet bounds a key set in bytes: it is in every listener that checks tokens by it.
const LongestKeySet = 64 << 10

// errNoKeySet says what a key set must be at least: Envoy refuses any other.
var errNoKeySet = errors.New("expected a JSON Web Key Set with at least one key, each of which tells its type (kty)")

// checkKeySet takes a JSON Web Key Set with keys.
func checkKeySet(text string) error {
	if len(text) > LongestKeySet {
		return fmt.Errorf("expected a key set of at most %d bytes, got %d", LongestKeySet, len(text))
	}
	var set struct {
		Keys []struct {
			Type string `json:"kty"`
		} `json:"keys"`
	}
	if err := json.Unmarshal([]byte(text), &set); err != nil || len(set.Keys) == 0 {
		return errNoKeySet
	}
	for _, k := range set.Keys {
		if k.Type == "" {
			return errNoKeySet
		}
	}
	return nil
}

// publicKey is what a proxy needs of a JSON Web Key. Nothing else of a key is passed on, a private part least of all.
type publicKey struct {
	Type      string `json:"kty"`
	ID        string `json:"kid,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	Use       string `json:"use,omitempty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
}

// whole reports whether a key has all parts of a public key whose type proxies know.
func (k publicKey) whole() bool {
	switch k.Type {
	case "RSA":
		return k.N != "" && k.E != ""
	case "EC":
		return k.Curve != "" && k.X != "" && k.Y != ""
	case "OKP":
		return k.Curve != "" && k.X != ""
	}
	return false
}

// ReadKeySet reads what an issuer publishes and returns a JSON Web Key Set in a form that depends on its keys alone,
// not on their order or on what else is said of them. Keys that proxies cannot use are left out; a secret that is
// shared (kty "oct") is no key to publish. It is an error if none is left.
func ReadKeySet(body []byte) (string, error) {
	if len(body) > LongestKeySet {
		return "", fmt.Errorf("the key set is longer than %d bytes", LongestKeySet)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return "", errors.New("what is there is no JSON Web Key Set")
	}
	var keys []publicKey
	for _, raw := range set.Keys {
		var k publicKey
		if err := json.Unmarshal(raw, &k); err == nil && k.whole() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b publicKey) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		return "", errors.New("the key set has no public key that a proxy can use")
	}
	out, err := json.Marshal(struct {
		Keys []publicKey `json:"keys"`
	}{keys})
	return string(out), err
}
