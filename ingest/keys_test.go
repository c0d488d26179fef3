package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// TestFetchedKeys: keys that were fetched become those of the rules that name their place, and of no others; nothing is
// handed over before the keys were tried, and what is wrong stands on the object.
func TestFetchedKeys(t *testing.T) {
	reports, keeper := report.New(report.Options{Log: testLog(t)}), newKeeper()
	s := NewStore(keeper, Settings{Reports: reports}, "dir", KeySource)
	apply := func(name, rules string) {
		t.Helper()
		s.Apply(decode(t, "dir", "kind: RequestAuthentication\nmetadata: {name: "+name+", namespace: shop}\nspec: {jwtRules: ["+
			rules+"]}"))
	}
	apply("a", "{issuer: x, jwksUri: 'https://x/keys', timeout: 2s}, {issuer: 'https://y/'}")
	apply("b", "{issuer: x, jwksUri: 'https://x/keys', timeout: 3s}")
	apply("c", `{issuer: z, jwks: '{"keys":[{"kty":"oct","k":"AAEC"}]}'}, {issuer: word}`)
	x, y := KeyPlace{URI: "https://x/keys"}, KeyPlace{Issuer: "https://y/"}
	wanted := func(settled bool) {
		t.Helper()
		<-s.WantedKeysChanged()
		w := s.WantedKeys()
		if w.Settled != settled || len(w.Places) != 2 || w.Places[x].Time != 3*time.Second ||
			w.Places[y].Time != 0 || !slices.Equal(w.Places[x].Namespaces, []string{"shop"}) {
			t.Errorf("wanted is %v", w)
		}
	}
	wanted(false)
	s.Synced("dir")
	wanted(true)
	if s.Ready() || len(keeper.batches) > 0 {
		t.Error("nobody waited for keys")
	}
	s.PutKeys(map[KeyPlace]Keys{x: {Set: "keys of x"}})
	s.Synced(KeySource)
	keys := func(name string, rule int) string {
		p, _ := keeper.state.objects[value.ObjectKey{Kind: value.KindRequestAuthentication, Namespace: "shop",
			Name: name}].(*value.RequestAuthentication)
		return p.Rules[rule].Keys
	}
	told := func(want string) {
		t.Helper()
		var got []string
		for _, p := range reports.All() {
			reason, _, _ := strings.Cut(p.Reason, ":")
			got = append(got, fmt.Sprint(p.Key.Name, " ", p.Field, " ", reason))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("told %q, want %q", strings.Join(got, "; "), want)
		}
	}
	if keys("a", 0) != "keys of x" || keys("a", 1) != "" || keys("b", 0) != "keys of x" || keys("c", 1) != "" {
		t.Error("not the keys that were fetched")
	}
	const noURL = "c spec.jwtRules[1].jwksUri there is neither jwks nor jwksUri, and the issuer is no URL that would say where its keys are"
	told("a spec.jwtRules[1].jwksUri the keys are not fetched yet; " + noURL)

	keeper.batches = nil
	s.PutKeys(map[KeyPlace]Keys{y: {Set: "keys of y"}})
	if len(keeper.batches) != 1 || len(keeper.batches[0].Objects) != 1 || keys("a", 1) != "keys of y" {
		t.Errorf("keys of one place changed %v", keeper.batches)
	}
	s.PutKeys(map[KeyPlace]Keys{y: {Set: "keys of y", Problem: "gone"}, x: {Set: "keys of x"}})
	if len(keeper.batches) != 1 {
		t.Error("a fetch that failed changed something")
	}
	told("a spec.jwtRules[1].jwksUri gone; " + noURL)
	s.PutKeys(map[KeyPlace]Keys{y: {}})
	if keys("a", 1) != "" {
		t.Error("forgotten keys are still there")
	}
	apply("a", "{issuer: x}")
	apply("b", "{issuer: x}")
	if w := s.WantedKeys(); len(w.Places) != 0 {
		t.Errorf("wanted is %v", w.Places)
	}
}

// TestReadKeySet: order and what is not a public key's make no difference, and a set without a usable key is refused.
func TestReadKeySet(t *testing.T) {
	const want = `{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"x","y":"y"},{"kty":"RSA","kid":"b","n":"n","e":"AQAB"}]}`
	const rsa, ec = `{"kty":"RSA","kid":"b","n":"n","e":"AQAB"`, `{"kid":"a","y":"y","x":"x","crv":"P-256","kty":"EC"}`
	for text, want := range map[string]string{
		`{"keys":[` + rsa + `,"d":"secret"},` + ec + `]}`: want,
		` {"more":1,"keys":[` + ec + `,` + rsa + `},{"kty":"oct","k":"AAEC"},{"kty":"RSA","n":5},7,{"kty":"RSA","n":"n"},` +
			ec + `]}`: want,
		`{"keys":[]}`:                         "",
		`{}`:                                  "",
		`<html>`:                              "",
		`[]`:                                  "",
		`{"keys":[{"kty":"oct","k":"AAEC"}]}`: "",
		`{"keys":[{"kty":"RSA","n":"` + strings.Repeat("n", LongestKeySet) + `","e":"AQAB"}]}`: "",
	} {
		if got, err := ReadKeySet([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%.100s: %q, %v", text, got, err)
		}
	}
}

// FuzzReadKeySet: what is read is a key set that the door takes too, without a private part, and reads as itself.
func FuzzReadKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","kid":"b","n":"n","e":"AQAB","d":"secret"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"x"},{"kty":"oct","k":"AAEC"}],"keys":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := ReadKeySet(body)
		if err != nil {
			return
		}
		if err := checkKeySet(text); err != nil && len(text) <= LongestKeySet {
			t.Fatalf("%q: %v", text, err)
		}
		var set struct{ Keys []map[string]string }
		if err := json.Unmarshal([]byte(text), &set); err != nil {
			t.Fatal(err)
		}
		for _, k := range set.Keys {
			if k["d"] != "" || k["k"] != "" {
				t.Fatalf("%q has a private part", text)
			}
		}
		if again, err := ReadKeySet([]byte(text)); err != nil && len(text) <= LongestKeySet || err == nil && again != text {
			t.Fatalf("%q reads as %q, %v", text, again, err)
		}
	})
}
