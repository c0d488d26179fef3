package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/kube"
	"github.com/pilotd/pilotd/report"
	"github.com/pilotd/pilotd/snapshot/value"
)

// factsEvery is the interval of looking for problems that are to be written to the API server.
const factsEvery = 2 * time.Second

// conditions reports whether to write the status of Istio's objects. istiod has two variables for it.
func conditions() bool {
	return os.Getenv("PILOT_ENABLE_STATUS") == "true" || os.Getenv("PILOT_ENABLE_ANALYSIS") == "true"
}

// newFacts returns the function by which the leader writes problems of objects to the API server, as events and
// conditions; nil if both are off.
func newFacts(o *options, reports *report.Registry, api *cluster.API, log *slog.Logger) func(context.Context) {
	if api == nil || !o.events && !conditions() {
		return nil
	}
	kinds := factKinds()
	f := cluster.Facts{Changes: reports.Changes, Instance: instance(), Events: o.events, Conditions: conditions(),
		Every: factsEvery, Clock: time.Now, Log: log,
		Now: func() map[cluster.FactObject][]cluster.Fact { return factsOf(reports.All(), kinds) }}
	for _, k := range kinds {
		f.Kinds = append(f.Kinds, k)
	}
	return func(ctx context.Context) { api.TellFacts(ctx, f) }
}

// factKinds returns the kinds of objects that are stored in API servers.
func factKinds() map[value.Kind]*cluster.FactKind {
	out := map[value.Kind]*cluster.FactKind{}
	for _, k := range ingest.Kinds() {
		if !k.Aside && k.Name != value.KindMeshConfig {
			out[k.Name] = &cluster.FactKind{Group: k.Name.Group(), Name: k.APIName(), Plural: k.Plural,
				Versions: k.Versions, Conditions: strings.HasSuffix(k.Name.Group(), ".istio.io")}
		}
	}
	return out
}

// factsOf returns the problems of objects of pilotd's own cluster, in the form that is written to the API server.
func factsOf(all []report.Standing, kinds map[value.Kind]*cluster.FactKind) map[cluster.FactObject][]cluster.Fact {
	out := map[cluster.FactObject][]cluster.Fact{}
	for _, p := range all {
		kind := kinds[p.Key.Kind]
		if kind == nil || p.Key.Cluster != "" || p.Source != "" && p.Source != kube.SourceName {
			continue
		}
		f := factOf(p.Cause)
		for _, part := range []string{p.Field, p.Resource, p.Reason} {
			if part != "" {
				f.Note += ": " + part
			}
		}
		f.Note = strings.TrimPrefix(f.Note, ": ")
		f.Severe = f.Severe || p.Security
		o := cluster.FactObject{Kind: kind, Namespace: p.Key.Namespace, Name: p.Key.Name}
		out[o] = append(out[o], f)
	}
	return out
}

// factOf returns the fact that is written for a cause.
func factOf(c report.Cause) cluster.Fact {
	switch c {
	case report.Invalid, report.Unreadable:
		return cluster.Fact{Reason: "Refused", Severe: true, Code: "IST0106", Type: "SchemaValidationError"}
	case report.NotServed:
		return cluster.Fact{Reason: "NotServed"}
	case report.Unresolved:
		return cluster.Fact{Reason: "Unresolved", Severe: true, Code: "IST0101", Type: "ReferencedResourceNotFound"}
	case report.LeftOut:
		return cluster.Fact{Reason: "LeftOut", Severe: true}
	case report.ClientRefused:
		return cluster.Fact{Reason: "RefusedByProxies", Severe: true}
	case report.Unavailable:
		return cluster.Fact{Reason: "Unavailable", Severe: true}
	}
	return cluster.Fact{Reason: "InternalError", Severe: true, Code: "IST0001", Type: "InternalError"}
}
