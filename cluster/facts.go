package cluster

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// FactKind is a kind of objects that facts may be about.
type FactKind struct {
	// Group, Name and Plural are the names in the API. Versions are the versions that the server may have, the
	// preferred one first.
	Group, Name, Plural string
	Versions            []string
	// Conditions says that the status of these objects has conditions in the form of Istio's API.
	Conditions bool
}

// FactObject names an object.
type FactObject struct {
	Kind            *FactKind
	Namespace, Name string
}

// String returns the kind, the namespace and the name.
func (o FactObject) String() string { return o.Kind.Name + " " + o.Namespace + "/" + o.Name }

// Fact is one problem of an object that keeps pilotd from using it or a part of it.
type Fact struct {
	// Reason is one word in CamelCase. Note says in one line what is wrong, and where.
	Reason, Note string
	// Code and Type are those of the message of Istio's analyzers for this problem; empty if there is none.
	Code, Type string
	// Severe says that the object, or a part of it, is not in force.
	Severe bool
}

// Facts are the settings of TellFacts.
type Facts struct {
	// Now returns the current facts by object, those of each object in a stable order.
	Now func() map[FactObject][]Fact
	// Changes returns another number when the result of Now has changed.
	Changes func() uint64
	// Kinds are all kinds that Now may name.
	Kinds []*FactKind
	// Instance names this replica.
	Instance string
	// Events turns on the Events, Conditions the conditions.
	Events, Conditions bool
	// Every is the interval of checks for new facts; Clock returns the time.
	Every time.Duration
	Clock func() time.Time
	// Log is the logger.
	Log *slog.Logger
}

const (
	// factRate is how many objects are written in a second, factBurst how many at once.
	factRate, factBurst = 5, 50
	// factPass is how many objects are written before the facts are read again.
	factPass = 50
)

// factTeller writes facts to an API server. Owned by the goroutine of TellFacts.
type factTeller struct {
	api     *API
	o       Facts
	seed    maphash.Seed
	limit   *rate.Limiter
	told    map[FactObject]uint64 // a digest of what was written; 0 for what an earlier leader wrote
	last    string                // the object that was written last
	version map[*FactKind]string  // the version that the server has
	failing string                // the last error that was logged
}

// TellFacts writes Events and conditions for the facts, and removes the conditions of objects without facts, until ctx
// ends. Only the leader calls it. Objects without facts are written only to remove a condition that was written before,
// also by an earlier leader.
func (a *API) TellFacts(ctx context.Context, o Facts) {
	t := &factTeller{api: a, o: o, seed: maphash.MakeSeed(), limit: rate.NewLimiter(factRate, factBurst),
		told: map[FactObject]uint64{}, version: map[*FactKind]string{}}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	begun, done, seen := !o.Conditions, false, uint64(0)
	for {
		if !begun {
			err := t.findOld(ctx)
			t.fail(ctx, err)
			begun = err == nil
		}
		if changes := o.Changes(); begun && (!done || changes != seen) {
			done, seen = t.pass(ctx), changes
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pass writes the objects whose facts have changed, at most factPass of them, starting after the object that was
// written last. It reports whether none is left.
func (t *factTeller) pass(ctx context.Context) (done bool) {
	now := t.o.Now()
	digests := map[FactObject]uint64{}
	var due []FactObject
	for o, facts := range now {
		digests[o] = t.digest(facts)
		if t.told[o] != digests[o] {
			due = append(due, o)
		}
	}
	for o := range t.told {
		if now[o] == nil {
			due = append(due, o)
		}
	}
	slices.SortFunc(due, func(a, b FactObject) int {
		ofA, ofB := a.String() > t.last, b.String() > t.last
		if ofA != ofB {
			if ofA {
				return -1
			}
			return 1
		}
		return strings.Compare(a.String(), b.String())
	})
	var failed error
	defer func() { t.fail(ctx, failed) }()
	for i, o := range due {
		if i == factPass || t.limit.Wait(ctx) != nil {
			return false
		}
		t.last = o.String()
		if err := t.tell(ctx, o, now[o]); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		delete(t.told, o)
		if now[o] != nil {
			t.told[o] = digests[o]
		}
	}
	return failed == nil
}

// digest returns a hash of facts.
func (t *factTeller) digest(facts []Fact) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, f := range facts {
		maphash.WriteComparable(&h, f)
	}
	return h.Sum64() | 1
}

// fail logs an error, unless it was the last one logged.
func (t *factTeller) fail(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != t.failing && text != "" && ctx.Err() == nil {
		t.o.Log.Error("what cannot be used of objects cannot be told to the API server", "error", err)
	}
	t.failing = text
}

// tell writes all facts of an object. It does nothing for an object that is gone.
func (t *factTeller) tell(ctx context.Context, o FactObject, facts []Fact) error {
	object, err := t.read(ctx, o)
	if err != nil || object == nil {
		return err
	}
	if t.o.Events {
		for _, f := range facts[:min(len(facts), maxEvents)] {
			if err := t.event(ctx, o, object, f); err != nil {
				return err
			}
		}
	}
	if !t.o.Conditions || !o.Kind.Conditions {
		return nil
	}
	err = t.condition(ctx, o, object, facts)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
