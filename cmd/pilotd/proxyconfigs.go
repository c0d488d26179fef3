package main

import (
	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/kube"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// proxyConfigs reads the ProxyConfig objects of the API server for the injector, and reports those that cannot be used.
// Of such an object the last good version stays in force. One goroutine owns it.
type proxyConfigs struct {
	// Immutable.
	kind     value.Kind
	revision string
	reports  *report.Registry

	// seen has the objects that there were at the last call of take, with their last good version if there was one.
	seen map[value.ObjectKey]*inject.ProxyConfig
}

func newProxyConfigs(revision string, reports *report.Registry) *proxyConfigs {
	return &proxyConfigs{kind: value.KindOf("networking.istio.io", "ProxyConfig"), revision: revision, reports: reports}
}

// take returns the objects that are in force when all is what the API server has.
func (p *proxyConfigs) take(all []cluster.ProxyConfig) []inject.ProxyConfig {
	now := make(map[value.ObjectKey]*inject.ProxyConfig, len(all))
	out := make([]inject.ProxyConfig, 0, len(all))
	for _, c := range all {
		if !ingest.OfRevision(c.Labels, p.revision) {
			continue
		}
		key := value.ObjectKey{Kind: p.kind, Namespace: c.Namespace, Name: c.Name}
		spec, refused := ingest.ReadProxyConfig(c.Spec)
		p.report(key, refused)
		good := p.seen[key]
		if refused == nil {
			good = &inject.ProxyConfig{Namespace: c.Namespace, Name: c.Name, Created: c.Created, Spec: spec}
		}
		if now[key] = good; good != nil {
			out = append(out, *good)
		}
	}
	for key := range p.seen {
		if _, ok := now[key]; !ok {
			p.report(key, nil)
		}
	}
	p.seen = now
	return out
}

// report says why an object is refused; nil takes back what was said.
func (p *proxyConfigs) report(key value.ObjectKey, refused *ingest.Rejection) {
	var problems []report.Problem
	if refused != nil {
		problems = []report.Problem{{Source: kube.SourceName, Key: key, Field: refused.Field, Cause: report.Invalid,
			Reason: refused.Reason}}
	}
	p.reports.Set(report.Subject{Owner: "injection", Key: key}, problems)
}
