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

// FactKind is a kind of objects of which something may be told.
type FactKind struct {
	// Group, Name and Plural are the API's, Versions those that it may have, the one to prefer first.
	Group, Name, Plural string
	Versions            []string
	// Conditions says that objects of the kind have a status with conditions as Istio's API has them.
	Conditions bool
}

// FactObject names an object.
type FactObject struct {
	Kind            *FactKind
	Namespace, Name string
}

// String returns the kind, the namespace and the name.
func (o FactObject) String() string { return o.Kind.Name + " " + o.Namespace + "/" + o.Name }

// Fact is one thing that pilotd cannot use of an object.
type Fact struct {
	// Reason is one word in CamelCase; Note says in one line what is wrong, and where.
	Reason, Note string
	// Code and Type are those of Istio's analyzers that mean this; empty where none does.
	Code, Type string
	// Severe tells that the object, or a part of it, is not in force.
	Severe bool
}

// Facts says what is told, and how.
type Facts struct {
	// Now returns what is wrong now, by object, each object's in an order that does not change.
	Now func() map[FactObject][]Fact
	// Changes differs when Now would.
	Changes func() uint64
	// Kinds are all that Now may name.
	Kinds []*FactKind
	// Instance names this replica.
	Instance string
	// Events has Events made, Conditions has conditions written.
	Events, Conditions bool
	// Every is how often it is looked for what is new; Clock is the time.
	Every time.Duration
	Clock func() time.Time
	// Log is the logger.
	Log *slog.Logger
}

const (
	// factRate is how many objects are written about in a second, factBurst how many at once.
	factRate, factBurst = 5, 50
	// factPass is how many objects are written about before it is looked anew what is wrong with which.
	factPass = 50
)

// factTeller tells an API server what pilotd cannot use. Owned by the goroutine of TellFacts.
type factTeller struct {
	api     *API
	o       Facts
	seed    maphash.Seed
	limit   *rate.Limiter
	told    map[FactObject]uint64 // a digest of what was told; 0 is what an earlier leader told
	last    string                // the object that was written about last
	version map[*FactKind]string  // that is served
	failing string                // the last problem that was logged
}

// TellFacts makes Events and conditions of what pilotd cannot use, and takes conditions back when it can, until ctx
// ends. It is for the leader. Objects that nothing is wrong with are not written, but to take back what an earlier
// leader told.
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

// pass writes about objects of which something new is to be told, factPass at most, beginning behind the one that was
// the last. It reports whether nothing is left.
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

// digest returns what stands for facts.
func (t *factTeller) digest(facts []Fact) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, f := range facts {
		maphash.WriteComparable(&h, f)
	}
	return h.Sum64() | 1
}

// fail logs a problem, unless it is the last one.
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

// tell tells the API server all that is wrong with an object. An object that is gone needs nothing.
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
