package bootstrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/agent/pod"
)

// Annotations that select which statistics Envoy keeps.
const (
	annotationPrefixes = "sidecar.istio.io/statsInclusionPrefixes"
	annotationSuffixes = "sidecar.istio.io/statsInclusionSuffixes"
	annotationRegexps  = "sidecar.istio.io/statsInclusionRegexps"
	annotationTags     = "sidecar.istio.io/extraStatTags"
	annotationBuckets  = "sidecar.istio.io/statsHistogramBuckets"
)

// statsConfig selects which statistics Envoy keeps, and which parts of their names become tags. The tags are those that
// the dashboards of Istio's proxies group by. Few statistics are kept, because each takes memory for each cluster.
func statsConfig(p *pod.Pod) (*metricsv3.StatsConfig, error) {
	matcher, err := statsMatcher(p)
	if err != nil {
		return nil, err
	}
	out := &metricsv3.StatsConfig{UseAllDefaultTags: wrapperspb.Bool(false), StatsMatcher: matcher}
	// The first group of the expression is cut out of the name; the second is the tag's value.
	for _, tag := range [][2]string{
		{"cluster_name", `^cluster\.((.+?(\..+?\.svc\.cluster\.local)?)\.)`},
		{"tcp_prefix", `^tcp\.((.*?)\.)\w+?$`},
		{"response_code", `_rq(_(\d{3}))$`},
		{"response_code_class", `_rq(_(\dxx))$`},
		{"http_conn_manager_listener_prefix", `^listener(?=\.).*?\.http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`},
		{"http_conn_manager_prefix", `^http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`},
		{"listener_address", `^listener\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`},
		{"mongo_prefix", `^mongo\.(.+?)\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$`},
		// Statistics of Istio's own filters, and of authorization in any Envoy.
		{"component", `(component\.(.+?)\.)`}, {"tag", `(tag\.(.+?);\.)`}, {"cache", `(cache\.(.+?)\.)`},
		{"wasm_filter", `(wasm_filter\.(.+?)\.)`}, {"authz_enforce_result", `rbac(\.(allowed|denied))`},
		{"authz_dry_run_action", `(\.istio_dry_run_(allow|deny)_)`}, {"authz_dry_run_result", `(\.shadow_(allowed|denied))`},
	} {
		out.StatsTags = append(out.StatsTags, tagSpecifier(tag[0], tag[1]))
	}
	extra := append(slices.Clone(p.Config.ExtraStatTags), split(p.Annotations[annotationTags])...)
	slices.Sort(extra)
	for _, name := range slices.Compact(extra) {
		if name == "" {
			continue
		}
		out.StatsTags = append(out.StatsTags, tagSpecifier(name, `(`+regexp.QuoteMeta(name)+`=\.=(.*?);\.;)`))
	}
	text := p.Annotations[annotationBuckets]
	if text == "" {
		return out, nil
	}
	buckets := map[string][]float64{}
	if err := json.Unmarshal([]byte(text), &buckets); err != nil {
		return nil, fmt.Errorf("annotation %s=%q: want a JSON object of prefixes with lists of numbers: %w",
			annotationBuckets, text, err)
	}
	for _, prefix := range slices.Sorted(maps.Keys(buckets)) {
		out.HistogramBucketSettings = append(out.HistogramBucketSettings, &metricsv3.HistogramBucketSettings{
			Match: matches(prefix, byPrefix), Buckets: buckets[prefix]})
	}
	return out, nil
}

func tagSpecifier(name, regex string) *metricsv3.TagSpecifier {
	return &metricsv3.TagSpecifier{TagName: name, TagValue: &metricsv3.TagSpecifier_Regex{Regex: regex}}
}

// statsMatcher keeps the statistics that readiness and dashboards need, and those that the pod asks for. It returns an
// error for an invalid expression, because Envoy would not start with it and would not say which setting it came from.
func statsMatcher(p *pod.Pod) (*metricsv3.StatsMatcher, error) {
	given := p.Config.GetProxyStatsMatcher()
	list := &matcherv3.ListStringMatcher{}
	for _, m := range []struct {
		kind  byte
		names [][]string
	}{
		{byPrefix, [][]string{{"cluster_manager", "listener_manager", "server", "cluster.xds-grpc", "wasm", "component",
			"istio", "reporter=", "workload_discovery"}, given.GetInclusionPrefixes(),
			split(p.Annotations[annotationPrefixes])}},
		{bySuffix, [][]string{{"rbac.allowed", "rbac.denied", "shadow_allowed", "shadow_denied", "downstream_cx_active"},
			given.GetInclusionSuffixes(), split(p.Annotations[annotationSuffixes])}},
		{byRegex, [][]string{given.GetInclusionRegexps(), split(p.Annotations[annotationRegexps])}},
	} {
		for _, name := range slices.Concat(m.names...) {
			if name == "" { // an empty name would match every statistic
				continue
			}
			if _, err := regexp.Compile(name); m.kind == byRegex && err != nil {
				return nil, fmt.Errorf("ProxyConfig's proxyStatsMatcher or annotation %s: %q: %w", annotationRegexps, name, err)
			}
			list.Patterns = append(list.Patterns, matches(name, m.kind))
		}
	}
	return &metricsv3.StatsMatcher{StatsMatcher: &metricsv3.StatsMatcher_InclusionList{InclusionList: list}}, nil
}

// Ways to match a name.
const (
	byPrefix = iota
	bySuffix
	byRegex
)

func matches(text string, how byte) *matcherv3.StringMatcher {
	switch how {
	case byPrefix:
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: text}}
	case bySuffix:
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: text}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
		SafeRegex: &matcherv3.RegexMatcher{Regex: text}}}
}

// split splits a comma-separated list.
func split(list string) (out []string) {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}
