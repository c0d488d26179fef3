package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/secrets"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// secretReports reports to the objects that name a secret why a proxy does not get it. The Store of secrets knows
// nothing about objects and calls trouble under its lock, so a goroutine of its own looks up the objects.
type secretReports struct {
	// Immutable after newSecretReports.
	reports *report.Registry
	view    func() *snapshot.View
	wake    chan struct{}

	mu sync.Mutex
	// Guarded by mu: the reasons, by resource and by the namespace of the proxies that ask.
	reasons map[string]map[string]string

	// Owned by the goroutine of run: the objects that have a report.
	told map[value.ObjectKey]struct{}
}

// maxReasons bounds the namespaces that a report names for one secret.
const maxReasons = 5

func newSecretReports(r *report.Registry, view func() *snapshot.View) *secretReports {
	return &secretReports{reports: r, view: view, wake: make(chan struct{}, 1), reasons: map[string]map[string]string{},
		told: map[value.ObjectKey]struct{}{}}
}

// trouble records why a resource is not available: see secrets.Options. The Store of secrets calls it under its lock.
func (s *secretReports) trouble(namespace, resource, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.reasons[resource]
	if of[namespace] == reason {
		return
	}
	switch {
	case reason == "" && len(of) == 1:
		delete(s.reasons, resource)
	case reason == "":
		delete(of, namespace)
	case of == nil:
		s.reasons[resource] = map[string]string{namespace: reason}
	default:
		of[namespace] = reason
	}
	s.signal()
}

// changed records that objects have changed.
func (s *secretReports) changed(d *snapshot.Delta) {
	for key := range d.Objects {
		if key.Kind == value.KindGateway || key.Kind == value.KindDestinationRule {
			s.signal()
			return
		}
	}
}

func (s *secretReports) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run updates the reports until ctx ends.
func (s *secretReports) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			s.look()
		}
	}
}

// look finds the objects that name an unavailable resource and reports it to them, and withdraws reports that no longer
// apply.
func (s *secretReports) look() {
	s.mu.Lock()
	reasons := make(map[string]map[string]string, len(s.reasons))
	for resource, of := range s.reasons {
		reasons[resource] = maps.Clone(of)
	}
	s.mu.Unlock()
	found := map[value.ObjectKey][]report.Problem{}
	if len(reasons) > 0 {
		named(s.view().Snapshot, func(key value.ObjectKey, field, resource string) {
			of := reasons[resource]
			for i, namespace := range slices.Sorted(maps.Keys(of)) {
				if i == maxReasons {
					break
				}
				found[key] = append(found[key], report.Problem{Key: key, Field: field, Cause: report.Unresolved,
					Reason: fmt.Sprintf("proxies of namespace %s: %s", namespace, of[namespace]), Resource: "SDS " + resource})
			}
		})
	}
	for key := range s.told {
		if found[key] == nil {
			found[key] = []report.Problem{}
		}
	}
	for key, problems := range found {
		s.reports.Set(report.Subject{Owner: "secrets", Key: key}, problems)
		if s.told[key] = struct{}{}; len(problems) == 0 {
			delete(s.told, key)
		}
	}
}

// named yields the resources that objects name, each with the object and the field.
func named(s *snapshot.Snapshot, yield func(key value.ObjectKey, field, resource string)) {
	for g := range snapshot.All[*value.Gateway](s) {
		for _, server := range g.Servers {
			if server.TLS == nil {
				continue
			}
			field := fmt.Sprintf("spec.servers[port %s].tls.", server.Port.Name)
			for i, name := range server.TLS.Credentials {
				yield(g.Object(), field+"credentialName", secrets.Resource(name, secrets.Certificate))
				if i == 0 && server.TLS.RootCredential == "" {
					yield(g.Object(), field+"credentialName", secrets.Resource(name, secrets.Roots))
				}
			}
			if name := server.TLS.RootCredential; name != "" {
				yield(g.Object(), field+"caCertCredentialName", secrets.Resource(name, secrets.Roots))
			}
		}
	}
	for rule := range snapshot.All[*value.DestinationRule](s) {
		policies := []*value.PortPolicies{rule.Policy}
		for _, subset := range rule.Subsets {
			policies = append(policies, subset.Policy)
		}
		for _, p := range policies {
			for policy := range p.All {
				if policy.TLS == nil || policy.TLS.Credential == "" {
					continue
				}
				for _, part := range []secrets.Part{secrets.Certificate, secrets.Roots} {
					yield(rule.Object(), "tls.credentialName", secrets.Resource(policy.TLS.Credential, part))
				}
			}
		}
	}
}
