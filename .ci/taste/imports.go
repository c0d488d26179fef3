package main

import (
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/pilotd/pilotd/"

// room says what the packages of a directory may import of this module. The longest
// matching directory counts.
type room struct {
	dir string
	may []string // directories with all that is below, or "=dir" for that package alone
}

// rooms returns the layout that docs/architecture.md draws. Imports point one way.
func rooms() []room {
	return []room{
		{"cmd/pilot-agent", []string{"agent", "=cmd/program"}},
		{"agent", []string{"agent", "proto", "xdstype", "proxyconfig"}},
		{"cmd", []string{"cmd", "ingest", "snapshot", "shard", "gen", "classes", "encodecache", "envoytext", "report",
			"status", "proxy", "xdstype", "identity", "ca", "cluster", "inject", "secrets"}},
		{"cmd/build", nil},
		{"cmd/program", []string{"=cmd/build"}},
		{"cmd/release", nil},
		{"cmd/pilotctl", []string{"cmd/pilotctl", "=cmd/build", "=cmd/program", "ingest", "inject", "deploy"}},
		{"deploy", nil},
		{"deploy/install", []string{"=deploy"}},
		{"proxyconfig", nil},
		{"inject", []string{"inject", "proxyconfig"}},
		{"inject/injecttest", []string{"=ingest"}},
		{"identity", []string{"=identity", "identity/quota"}},
		{"ca", []string{"=identity", "identity/quota"}},
		{"cluster", []string{"=identity", "identity/authn", "=ca", "=secrets"}},
		{"cluster/leader", nil},
		{"proxy", []string{"=identity", "=snapshot/value"}},
		{"status", []string{"snapshot", "report"}},
		{"report", []string{"=snapshot/value"}},
		{"ingest", []string{"ingest", "snapshot", "report", "envoytext", "proxyconfig"}},
		{"envoytext", nil},
		{"snapshot", []string{"=snapshot/value", "=snapshot/chunked"}},
		{"snapshot/snapshottest", []string{"=snapshot", "=snapshot/value"}},
		{"snapshot/chunked", nil},
		{"xdstype", nil},
		{"transcript", nil},
		{"prioqueue", nil},
		{"proto", nil},
		{"snapshot/value", nil},
		{"gen", []string{"proto", "=snapshot/value", "=gen/check", "envoytext"}},
		{"gen/check", []string{"envoytext"}},
		{"classes", []string{"encodecache", "=snapshot", "=snapshot/chunked", "=snapshot/value", "xdstype"}},
		{"gen/plan", []string{"gen", "snapshot", "classes", "encodecache", "envoytext", "proxy", "xdstype"}},
		{"gen/plan/checked", []string{"=gen", "=snapshot", "=snapshot/value", "encodecache", "xdstype"}},
		{"gen/plan/endpoints", []string{"=gen", "=snapshot", "=snapshot/value", "classes", "encodecache", "xdstype"}},
		{"gen/plan/scope", []string{"=gen", "=snapshot", "=snapshot/value", "encodecache"}},
		{"gen/plan/outbound", []string{"=gen/plan/scope", "=gen/plan/endpoints", "=gen/plan/checked", "=gen/plan/section",
			"classes", "gen", "=snapshot", "=snapshot/value", "=snapshot/chunked", "encodecache", "envoytext", "xdstype"}},
		{"gen/plan/section", []string{"encodecache", "=snapshot/chunked"}},
		{"gen/plan/workload", []string{"proxy", "=snapshot", "=snapshot/value"}},
		{"gen/plan/gateway", []string{"=gen/plan/scope", "=gen/plan/outbound", "=gen/plan/checked", "=gen/plan/section",
			"classes", "=gen/plan/workload", "=gen", "=snapshot", "=snapshot/value", "=snapshot/chunked", "encodecache", "xdstype"}},
		{"gen/plan/inbound", []string{"=gen/plan/workload", "=gen/plan/checked", "=gen", "=snapshot", "=snapshot/value",
			"=snapshot/chunked", "encodecache", "xdstype"}},
		{"encodecache", nil},
		{"shard", []string{"shard", "classes", "encodecache", "snapshot", "proxy", "xdstype", "prioqueue",
			"=identity", "identity/quota"}},
		{"secrets", []string{"=identity", "identity/quota", "encodecache", "=snapshot/chunked", "xdstype"}},
		{"shard/ads", []string{"classes", "encodecache", "=snapshot/chunked", "xdstype"}},
		{"shard/admission", []string{"prioqueue"}},
		{"shard/handshake", []string{"=identity", "identity/quota"}},
		{"loadtest", []string{"loadtest", "xdstype", "=cmd/program"}},
	}
}

// istioAPI has Istio's messages, and istioFilters those of them that configure Istio's own filters in Envoy.
const (
	istioAPI     = "istio.io/api"
	istioFilters = "istio.io/api/envoy"
)

// neutral returns the directories that know nothing of the API that users write objects in.
func neutral() []string {
	return []string{"encodecache", "gen", "proxy", "report", "shard", "snapshot", "status", "xdstype"}
}

// imports checks the direction of imports, that the packages that talk to API servers alone know client-go, and that
// what stands behind the door knows no message of the APIs that objects are written in: values are neutral.
func imports(s source) []string {
	if s.test || strings.HasPrefix(s.path, "e2e/") {
		return nil
	}
	var findings []string
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if strings.HasPrefix(path, "k8s.io/client-go") && s.dir() != "ingest/kube" && s.dir() != "loadtest/cluster" &&
			!within(s.dir(), "cluster") {
			findings = append(findings, s.at(spec, "only ingest/kube, cluster and loadtest/cluster import client-go"))
		}
		if within(path, "helm.sh") && s.dir() != "deploy/install" {
			findings = append(findings, s.at(spec, "only deploy/install imports Helm's library"))
		}
		if within(path, istioAPI) && !within(path, istioFilters) && withinAny(s.dir(), neutral()) {
			findings = append(findings, s.at(spec, "%s must not import %s: package value has what it says", s.dir(), path))
		}
		if target, own := strings.CutPrefix(path, module); own && !allowed(s.dir(), target) {
			findings = append(findings, s.at(spec, "%s must not import %s", s.dir(), target))
		}
	}
	return findings
}

func allowed(dir, target string) bool {
	var best *room
	for _, r := range rooms() {
		if within(dir, r.dir) && (best == nil || len(r.dir) > len(best.dir)) {
			best = &r
		}
	}
	if best == nil {
		return true
	}
	for _, may := range best.may {
		if exact, ok := strings.CutPrefix(may, "="); ok {
			if target == exact {
				return true
			}
		} else if within(target, may) {
			return true
		}
	}
	return false
}

// withinAny reports whether dir is one of the roots or below one.
func withinAny(dir string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(dir, root) })
}

// within reports whether dir is root or below it.
func within(dir, root string) bool {
	return dir == root || strings.HasPrefix(dir, root+"/")
}
