package identity

import (
	"strings"
	"testing"
)

// A SPIFFE ID and its parts say the same, and what is no ID of a service account is refused.
func TestParse(t *testing.T) {
	const id = "spiffe://cluster.local/ns/shop/sa/web"
	got, err := Parse(id)
	if err != nil || got != (Identity{"cluster.local", "shop", "web"}) || got.String() != id {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.String() == "" || (Identity{}).String() != "" {
		t.Error("nobody has no ID")
	}
	for _, bad := range []string{"", "cluster.local/ns/shop/sa/web", "https://cluster.local/ns/shop/sa/web",
		"spiffe:///ns/shop/sa/web", "spiffe://cluster.local/ns/shop", "spiffe://cluster.local/ns//sa/web",
		"spiffe://cluster.local/ns/shop/sa/web/", "spiffe://cluster.local/ns/shop/sa/web/more",
		"spiffe://cluster.local/ns/../sa/web", "spiffe://cluster.local/sa/shop/ns/web",
		"spiffe://user@cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/web?x=y"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

// No name stands for more than its own part.
func TestNamesStandForThemselves(t *testing.T) {
	for _, bad := range []Identity{{"", "a", "b"}, {"td", "", "b"}, {"td", "a", ""}, {"td", "a/sa/b", "c"},
		{"td", "a", "b/x"}, {"td", "..", "b"}, {"td/x", "a", "b"}, {"spiffe://td", "a", "b"}, {"td", "a b", "c"}} {
		if _, err := New(bad.TrustDomain, bad.Namespace, bad.ServiceAccount); err == nil {
			t.Errorf("%+v is an identity", bad)
		}
	}
}

// Kubernetes's name of a service account has two parts and no more.
func TestOfUser(t *testing.T) {
	if ns, sa, ok := OfUser("system:serviceaccount:shop:web"); ns != "shop" || sa != "web" || !ok {
		t.Error(ns, sa, ok)
	}
	for _, bad := range []string{"", "web", "system:serviceaccount:", "system:serviceaccount:shop",
		"system:serviceaccount::web", "system:serviceaccount:shop:", "system:serviceaccount:a:b:c",
		"x:system:serviceaccount:shop:web"} {
		if _, _, ok := OfUser(bad); ok {
			t.Errorf("%q is a service account", bad)
		}
	}
}

// FuzzParse holds that whatever is parsed is written again as it was, and that its names are one segment each.
func FuzzParse(f *testing.F) {
	f.Add("spiffe://cluster.local/ns/shop/sa/web")
	f.Add("spiffe://a/ns/b/sa/c/d")
	f.Fuzz(func(t *testing.T, uri string) {
		i, err := Parse(uri)
		if err != nil {
			return
		}
		if !strings.EqualFold(i.String(), uri) || strings.Contains(i.Namespace+i.ServiceAccount, "/") {
			t.Errorf("%q became %+v", uri, i)
		}
		if again, err := Parse(i.String()); err != nil || again != i {
			t.Errorf("%q became %+v, then %+v: %v", uri, i, again, err)
		}
	})
}
