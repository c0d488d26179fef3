package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/ca"
)

// The Secrets that may hold an authority: users provide pluggedSecret, pilotd creates ownSecret.
const (
	pluggedSecret = "cacerts"
	ownSecret     = "istio-ca-secret"
	ownType       = "istio.io/ca-root"
)

// AuthorityOptions are the settings of an Authority.
type AuthorityOptions struct {
	// Namespace is the namespace of the Secrets.
	Namespace string
	// Keeper receives the material.
	Keeper *ca.Keeper
	// Root returns the properties of a root that pilotd creates.
	Root func() ca.Root
	// Now returns the time.
	Now func() time.Time
	// Log is the logger.
	Log *slog.Logger
}

// Authority keeps a mesh's certificate authority in a Secret: one that users have plugged in (cacerts), or else one
// that pilotd creates (istio-ca-secret). All replicas read it; the first replica that finds none creates it.
type Authority struct {
	// Immutable after NewAuthority.
	api          *API
	o            AuthorityOptions
	wake         chan struct{}
	inForce      chan struct{} // closed when the Keeper has received the first authority
	plugged, own *watched
	passedOver   sync.Once // for logging once what is not served

	mu sync.Mutex
	// Guarded by mu.
	told string // the last problem that was logged
}

// NewAuthority makes an Authority. It does nothing before Run.
func NewAuthority(api *API, o AuthorityOptions) *Authority {
	a := &Authority{api: api, o: o, wake: make(chan struct{}, 1), inForce: make(chan struct{})}
	wake := func() {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
	a.plugged = api.watchSecret(o.Namespace, pluggedSecret, wake, a.unreadable)
	a.own = api.watchSecret(o.Namespace, ownSecret, wake, a.unreadable)
	return a
}

// unreadable records that a Secret cannot be read.
func (a *Authority) unreadable(err error) {
	if !a.plugged.HasSynced() || !a.own.HasSynced() {
		a.fail(fmt.Errorf("the Secrets %s and %s of namespace %s cannot be read: %w", pluggedSecret, ownSecret,
			a.o.Namespace, err))
	}
}

// fail records a problem, and logs it unless it was the last one logged.
func (a *Authority) fail(err error) {
	a.o.Keeper.Fail(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if text := err.Error(); text != a.told {
		a.told = text
		a.o.Log.Error("the certificate authority", "error", err)
	}
}

// Run passes the material to the Keeper, now and whenever it changes, until ctx ends.
func (a *Authority) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { a.plugged.RunWithContext(ctx) })
	all.Go(func() { a.own.RunWithContext(ctx) })
	if !a.plugged.synced(ctx) || !a.own.synced(ctx) {
		return
	}
	var first sync.Once
	for {
		again := (<-chan time.Time)(nil)
		if err := a.take(ctx); err != nil {
			a.fail(err)
			again = time.After(retry)
		} else if a.o.Keeper.Authority() != nil {
			first.Do(func() { close(a.inForce) })
		}
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-again:
		}
	}
}

// take passes the current content of the Secrets to the Keeper, and creates an authority if there is none.
func (a *Authority) take(ctx context.Context) error {
	for _, w := range []*watched{a.plugged, a.own} {
		s := w.secret()
		if s == nil {
			continue
		}
		m, ok, err := ca.FromData(s.Data)
		if err != nil {
			return fmt.Errorf("the Secret %s: %w", w.key, err)
		}
		if !ok {
			continue
		}
		if len(s.Data[ca.RevocationsName]) > 0 {
			a.passedOver.Do(func() {
				a.o.Log.Warn("a list of revoked certificates is not served: workloads do not get it", "secret", w.key,
					"key", ca.RevocationsName)
			})
		}
		if err := a.o.Keeper.Take(m); err != nil {
			return fmt.Errorf("the Secret %s: %w", w.key, err)
		}
		return nil
	}
	return a.make(ctx)
}

// make creates the Secret with a new authority. The watch event then brings it into force, as it does with one that
// another replica has created at the same moment. If an authority is already in force, make writes that one again,
// because nobody would trust a new one.
func (a *Authority) make(ctx context.Context) error {
	m, ok := a.o.Keeper.SelfSigned()
	if !ok && a.o.Keeper.Authority() != nil {
		return errors.New("the authority that was plugged in is gone; it stays in force")
	}
	if !ok {
		var err error
		if m, err = ca.SelfSigned(a.o.Root(), a.o.Now()); err != nil {
			return err
		}
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.o.Namespace, Name: ownSecret}, Type: ownType,
		Data: m.Data()}
	_, err := a.api.core.Secrets(a.o.Namespace).Create(ctx, s, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		// The Secret has no key, or its watch event has not arrived yet.
		return fmt.Errorf("the Secret %s/%s is there, and has no key yet", a.o.Namespace, ownSecret)
	case err != nil:
		return fmt.Errorf("the Secret %s/%s cannot be made: %w", a.o.Namespace, ownSecret, err)
	}
	a.o.Log.Info("a certificate authority was made", "secret", a.o.Namespace+"/"+ownSecret)
	return nil
}

// Renew renews the root that pilotd has created when it is due. It checks as soon as an authority is in force and at
// each tick, until ctx ends. Only the leader calls it.
func (a *Authority) Renew(ctx context.Context, tick <-chan time.Time) {
	select {
	case <-ctx.Done():
		return
	case <-a.inForce:
	}
	for {
		if err := a.renew(ctx); err != nil {
			a.o.Log.Error("the root cannot be renewed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// renew writes the renewed root into the Secret if the Secret still holds the authority in force.
func (a *Authority) renew(ctx context.Context) error {
	before, ok := a.o.Keeper.SelfSigned()
	if !ok || a.own.secret() == nil {
		return nil
	}
	m, due, err := a.o.Keeper.Renew(a.o.Root(), a.o.Now())
	if !due || err != nil {
		return err
	}
	s := a.own.secret().DeepCopy()
	if now, _, err := ca.FromData(s.Data); err != nil || !reflect.DeepEqual(now, before) {
		return nil // the Secret has changed, or the authority in force is from elsewhere
	}
	s.Data = m.Data()
	if _, err := a.api.core.Secrets(a.o.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("the Secret %s: %w", a.own.key, err)
	}
	a.o.Log.Info("the root was renewed", "secret", a.own.key)
	return nil
}
