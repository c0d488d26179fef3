package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/cluster/leader"
	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/identity"
	"github.com/pilotd/pilotd/secrets"
)

// realAPI returns a real API server, with the namespaces istio-system and shop, and its administrator's credentials.
func realAPI(t *testing.T) (a *API, cfg *rest.Config, server *parts.APIServer) {
	t.Helper()
	if _, err := os.Stat(os.Getenv("APISERVER")); err != nil {
		t.Fatalf("APISERVER names no API server (%v): `make unit` builds one and sets it", err)
	}
	server = parts.StartAPIServer(t)
	cfg, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"istio-system", "shop"} {
		makeNamespace(t, a, ns)
	}
	return a, cfg, server
}

func makeNamespace(t *testing.T, a *API, name string) {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := a.core.Namespaces().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestCluster has what pilotd asks of a real API server, and writes to it.
func TestCluster(t *testing.T) {
	a, cfg, server := realAPI(t)
	t.Run("tokens", func(t *testing.T) { testTokens(t, a, cfg.BearerToken) })
	t.Run("authority", func(t *testing.T) { testAuthority(t, a) })
	t.Run("roots", func(t *testing.T) { testRoots(t, a) })
	t.Run("credentials", func(t *testing.T) { testCredentials(t, a) })
	t.Run("rights", func(t *testing.T) { testSecretRights(t, a, cfg) })
	t.Run("webhooks", func(t *testing.T) { testWebhooks(t, a) })
	t.Run("agents of nodes", func(t *testing.T) { testNodeAgents(t, a) })
	t.Run("facts", func(t *testing.T) { testFacts(t, a, server) })
	t.Run("loads", func(t *testing.T) { testLoads(t, a) })
	t.Run("many facts", func(t *testing.T) { testManyFacts(t, a) })
	t.Run("leader", func(t *testing.T) { testLeader(t, a) })
}

// The server vouches for its own tokens, for their audience, as long as the service account is there.
func testTokens(t *testing.T, a *API, admin string) {
	accounts := a.core.ServiceAccounts("shop")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if _, err := accounts.Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := func(audience string) string {
		seconds := int64(600)
		r, err := accounts.CreateToken(t.Context(), "web", &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status.Token
	}
	good, other := token("istio-ca"), token("vault")
	review := func(name, token string, want bool) {
		t.Helper()
		r, err := a.Review(t.Context(), token, []string{"istio-ca"})
		if err != nil || r.Good != want || want && r.User != "system:serviceaccount:shop:web" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	review("good", good, true)
	review("another audience", other, false)
	review("forged", good[:len(good)-8]+"AAAAAAAA", false)
	review("nonsense", "nonsense", false)
	// The administrator's token knows no audience: the server vouches for it for itself alone.
	r, err := a.Review(t.Context(), admin, []string{"istio-ca"})
	if err != nil || r.Good {
		t.Errorf("a token without audiences: %+v, %v", r, err)
	}
	if err := accounts.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	parts.Eventually(t, "the token is revoked", func() error {
		if r, err := a.Review(t.Context(), good, []string{"istio-ca"}); err != nil || r.Good {
			return fmt.Errorf("%+v, %v", r, err)
		}
		return nil
	})
}

// replica is an Authority that runs.
type replica struct {
	*Authority
	keeper *ca.Keeper
	stop   func()
}

func runReplica(t *testing.T, a *API, now func() time.Time) *replica {
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{keeper: ca.NewKeeper(nil)}
	r.Authority = NewAuthority(a, AuthorityOptions{Namespace: "istio-system", Keeper: r.keeper, Now: now,
		Root: func() ca.Root { return ca.Root{Organization: "cluster.local", Life: 100 * time.Hour} },
		Log:  slog.New(slog.DiscardHandler)})
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	r.stop = func() { cancel(); all.Wait() }
	t.Cleanup(r.stop)
	return r
}

func (r *replica) roots() string {
	if a := r.keeper.Authority(); a != nil {
		return a.Roots()
	}
	return ""
}

// Replicas agree on one authority whoever makes it; a renewed root, and one that is plugged in, reach all; one that is
// deleted is written again, and bad material changes nothing.
func testAuthority(t *testing.T, a *API) {
	now := time.Now()
	one, two := runReplica(t, a, func() time.Time { return now }), runReplica(t, a, func() time.Time { return now })
	agree := func(what string, test func(roots string) bool) string {
		t.Helper()
		parts.Eventually(t, what, func() error {
			if r := one.roots(); r == "" || r != two.roots() || !test(r) {
				return fmt.Errorf("%.80q and %.80q", r, two.roots())
			}
			return nil
		})
		return one.roots()
	}
	first := agree("the replicas have one authority", func(string) bool { return true })
	secrets := a.core.Secrets("istio-system")
	s, err := secrets.Get(t.Context(), "istio-ca-secret", metav1.GetOptions{})
	if err != nil || s.Type != "istio.io/ca-root" || len(s.Data["ca-key.pem"]) == 0 ||
		string(s.Data["ca-cert.pem"]) != first {
		t.Fatal(s.Type, err)
	}

	if err := one.renew(t.Context()); err != nil || one.roots() != first {
		t.Error("it is early to renew:", err)
	}
	late := runReplica(t, a, func() time.Time { return now.Add(90 * time.Hour) })
	parts.Eventually(t, "the root is renewed", func() error {
		if err := late.renew(t.Context()); err != nil {
			return err
		}
		if strings.Count(late.roots(), "BEGIN") != 2 {
			return errors.New("there is one root")
		}
		return nil
	})
	late.stop()
	renewed := agree("the renewed root is everywhere", func(r string) bool {
		return strings.Contains(r, first) && r != first
	})

	if err := secrets.Delete(t.Context(), "istio-ca-secret", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	parts.Eventually(t, "the Secret is written again", func() error {
		s, err := secrets.Get(t.Context(), "istio-ca-secret", metav1.GetOptions{})
		if err == nil && string(s.Data["root-cert.pem"]) != renewed {
			return errors.New("with another authority")
		}
		return err
	})
	agree("nothing changes", func(r string) bool { return r == renewed })

	m, err := ca.SelfSigned(ca.Root{Organization: "plugged", Life: time.Hour}, now)
	if err != nil {
		t.Fatal(err)
	}
	bad := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cacerts"}, Data: m.Data()}
	bad.Data["ca-key.pem"] = []byte("nonsense")
	have, err := secrets.Create(t.Context(), bad, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	parts.Eventually(t, "the bad one is reported", func() error {
		if err := one.keeper.Problem(); err == nil || !strings.Contains(err.Error(), "cacerts") {
			return fmt.Errorf("the problem is %v", err)
		}
		return nil
	})
	agree("the last good one is in force", func(r string) bool { return r == renewed })
	have.Data = m.Data()
	if _, err := secrets.Update(t.Context(), have, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	agree("the one that is plugged in is everywhere", func(r string) bool { return r == string(m.Roots) })
	if err := one.renew(t.Context()); err != nil {
		t.Error("somebody else's is not renewed:", err)
	}
}

// Every namespace but Kubernetes's own has the roots: those that come later, and those where somebody has changed or
// deleted them; other keys stay.
func testRoots(t *testing.T, a *API) {
	var mu sync.Mutex
	text := "first"
	changed := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		a.PublishRoots(ctx, Roots{Changed: changed, Log: slog.New(slog.DiscardHandler), Text: func() string {
			mu.Lock()
			defer mu.Unlock()
			return text
		}})
	})
	defer all.Wait()
	defer stop()
	get := func(namespace string) (*corev1.ConfigMap, error) {
		return a.core.ConfigMaps(namespace).Get(t.Context(), "istio-ca-root-cert", metav1.GetOptions{})
	}
	has := func(namespace, want string) {
		t.Helper()
		parts.Eventually(t, namespace+" has the roots", func() error {
			m, err := get(namespace)
			if err == nil && (m.Data["root-cert.pem"] != want || m.Labels["istio.io/config"] != "true") {
				return fmt.Errorf("%+v", m)
			}
			return err
		})
	}
	has("shop", "first")
	makeNamespace(t, a, "later")
	has("later", "first")
	m, err := get("shop")
	if err != nil {
		t.Fatal(err)
	}
	m.Data["root-cert.pem"], m.Data["other"] = "edited", "kept"
	if _, err := a.core.ConfigMaps("shop").Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	has("shop", "first")
	if m, err := get("shop"); err != nil || m.Data["other"] != "kept" {
		t.Error(m, err)
	}
	if err := a.core.ConfigMaps("later").Delete(t.Context(), m.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	has("later", "first")
	mu.Lock()
	text = "second"
	mu.Unlock()
	changed <- struct{}{}
	for _, ns := range []string{"shop", "later", "default"} {
		has(ns, "second")
	}
	if _, err := get("kube-system"); err == nil {
		t.Error("kube-system has the roots")
	}
}

// One replica leads at a time; when it ends another one does.
func testLeader(t *testing.T, a *API) {
	type term struct {
		who int
		end func()
	}
	const replicas = 3
	terms := make(chan term)
	var leading atomic.Int32
	var all sync.WaitGroup
	for who := range replicas {
		ctx, cancel := context.WithCancel(t.Context())
		o := leader.Options{Leases: a.Leases, Namespace: "istio-system", Name: "test", Holder: fmt.Sprint(who),
			Lasts: 3 * time.Second, Log: slog.New(slog.DiscardHandler)}
		all.Go(func() {
			if err := leader.Run(ctx, o, func(leads context.Context) {
				if leading.Add(1) > 1 {
					t.Error("two lead")
				}
				defer leading.Add(-1)
				terms <- term{who, cancel}
				<-leads.Done()
			}); err != nil {
				t.Error(err)
			}
		})
	}
	led := map[int]bool{}
	for range replicas {
		now := <-terms
		if led[now.who] {
			t.Errorf("%d leads again", now.who)
		}
		led[now.who] = true
		now.end()
	}
	all.Wait()
}

// A Secret is told when it is wanted, whenever it changes and when it is gone; nothing is told of others, nor of one
// that nobody wants any more.
func testCredentials(t *testing.T, a *API) {
	told := make(chan string, 100)
	want := func(o secrets.Object, f secrets.Found) {
		text := o.Name + " gone"
		switch {
		case f.Err != nil:
			text = o.Name + ": " + f.Err.Error()
		case f.Material != nil:
			text = o.Name
		}
		told <- text
	}
	next := func(text string) {
		t.Helper()
		select {
		case got := <-told:
			if got != text {
				t.Fatalf("told %q, want %q", got, text)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q is not told", text)
		}
	}
	c := NewCredentials(a, slog.New(slog.DiscardHandler), want)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { c.Run(ctx) })
	defer all.Wait()
	defer cancel()
	in := a.core.Secrets("shop")
	put := func(name, value string) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"tls.crt": []byte(value)}}
		_, err := in.Update(t.Context(), s, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = in.Create(t.Context(), s, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edge := secrets.Object{Namespace: "shop", Name: "edge"}
	c.Want(edge, true)
	next("edge gone")
	put("other", "1")
	put("edge", "1")
	next("edge")
	put("edge", "2")
	next("edge")
	roots := secrets.Object{Namespace: "shop", Name: "roots", ConfigMap: true}
	c.Want(roots, true)
	next("roots gone")
	if _, err := a.core.ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "roots"}, Data: map[string]string{"ca.crt": "x"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	next("roots")
	if err := in.Delete(t.Context(), "edge", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next("edge gone")
	c.Want(edge, false)
	put("edge", "3")
	c.Want(edge, true) // asked for anew, and told once for what happened meanwhile
	next("edge")
}

// Who may list Secrets is what the server's Roles say.
func testSecretRights(t *testing.T, a *API, cfg *rest.Config) {
	gateway := identity.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "gateway"}
	if may, err := a.MayListSecrets(t.Context(), gateway); err != nil || may {
		t.Errorf("without a Role: %v, %v", may, err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "gateway"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}}}}
	roles, err := rbacclient.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := roles.Roles("shop").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.RoleBindings("shop").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gateway"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io",
			Kind: "Role", Name: "gateway"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "gateway", Namespace: "shop"}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	parts.Eventually(t, "the Role counts", func() error {
		if may, err := a.MayListSecrets(t.Context(), gateway); err != nil || !may {
			return fmt.Errorf("%v, %v", may, err)
		}
		return nil
	})
	elsewhere := gateway
	elsewhere.Namespace = "istio-system"
	if may, err := a.MayListSecrets(t.Context(), elsewhere); err != nil || may {
		t.Errorf("in another namespace: %v, %v", may, err)
	}
}
