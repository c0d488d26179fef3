package ingest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// LongestKeySet bounds the size of a key set in bytes, because every listener that checks tokens contains it.
const LongestKeySet = 64 << 10

// errNoKeySet describes the least that a key set must have; Envoy refuses any other.
var errNoKeySet = errors.New("expected a JSON Web Key Set with at least one key, each of which tells its type (kty)")

// checkKeySet checks that text is a JSON Web Key Set with at least one key.
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

// publicKey has the fields of a JSON Web Key that a proxy needs. No other field is passed on, above all no private
// part.
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

// whole reports whether k has all fields of a public key of its type, and proxies support that type.
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

// ReadKeySet reads what an issuer publishes and returns a JSON Web Key Set in a canonical form, which depends on the
// keys alone, not on their order or other fields. Keys that proxies cannot use are dropped, and so are shared secrets
// (kty "oct"), which must not be published. It is an error if no key is left.
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
