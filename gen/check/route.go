package check

import (
	"fmt"
	"math"
	"strings"
	"time"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotd/pilotd/envoytext"
)

// maxBody is the largest body of a direct response that the route configurations allow which pilotd sends.
const maxBody = 1 << 20

// VirtualHost returns the rules that a virtual host breaks. No RE2 program of its regular expressions may have more
// than regexSize instructions; 0 sets no limit.
func VirtualHost(v *routepb.VirtualHost, regexSize int) []Fault {
	f := &faults{regexSize: regexSize}
	f.validate(v)
	seen := make(map[string]struct{}, len(v.GetDomains()))
	for i, d := range v.GetDomains() {
		d = strings.ToLower(d)
		if _, ok := seen[d]; ok {
			f.add(fmt.Sprintf("domains[%d]", i), "%s stands there twice, in whatever case", cut(d))
		}
		seen[d] = struct{}{}
	}
	for i, r := range v.GetRoutes() {
		f.route(fmt.Sprintf("routes[%d]", i), r)
		if f.regexSize > 0 {
			f.packedRegexes(fmt.Sprintf("routes[%d]", i), r)
		}
	}
	return f.list
}

// packedRegexes checks the size of the regular expressions that a route has in packed messages. What else is wrong with
// these was found when they were packed, when nobody knew for which proxies.
func (f *faults) packedRegexes(path string, r *routepb.Route) {
	for name, a := range r.GetTypedPerFilterConfig() {
		c := &corspb.CorsPolicy{}
		if !a.MessageIs(c) {
			continue
		}
		if err := proto.Unmarshal(a.GetValue(), c); err != nil {
			f.add(path, "the configuration of filter %s cannot be read: %v", cut(name), err)
		}
		f.cors(fmt.Sprintf("%s.typed_per_filter_config[%s]", path, name), c)
	}
}

func (f *faults) cors(path string, c *corspb.CorsPolicy) {
	for i, o := range c.GetAllowOriginStringMatch() {
		f.matcher(join(path, fmt.Sprintf("allow_origin_string_match[%d]", i)), o)
	}
}

func (f *faults) route(path string, r *routepb.Route) {
	f.match(path+".match", r.GetMatch())
	f.headers(path+".request_headers_to_add", r.GetRequestHeadersToAdd())
	f.headers(path+".response_headers_to_add", r.GetResponseHeadersToAdd())
	f.removed(path+".request_headers_to_remove", r.GetRequestHeadersToRemove())
	f.removed(path+".response_headers_to_remove", r.GetResponseHeadersToRemove())
	switch a := r.GetAction().(type) {
	case *routepb.Route_Route:
		f.action(path+".route", a.Route)
	case *routepb.Route_DirectResponse:
		b := a.DirectResponse.GetBody()
		if n := len(b.GetInlineString()) + len(b.GetInlineBytes()); n > maxBody {
			f.add(path+".direct_response.body", "has %d bytes, at most %d are allowed", n, maxBody)
		}
	case *routepb.Route_Redirect:
		if re := a.Redirect.GetRegexRewrite(); re != nil {
			f.substitution(path+".redirect.regex_rewrite", re)
		}
	case nil:
		f.add(path, "leads nowhere")
	}
}

func (f *faults) match(path string, m *routepb.RouteMatch) {
	f.regex(path+".safe_regex", m.GetSafeRegex())
	for i, h := range m.GetHeaders() {
		at := fmt.Sprintf("%s.headers[%d]", path, i)
		f.matcher(at+".string_match", h.GetStringMatch())
		//lint:ignore SA1019 whoever still sets it is checked all the same
		f.regex(at+".safe_regex_match", h.GetSafeRegexMatch())
	}
	for i, c := range m.GetDynamicMetadata() {
		for _, one := range append(c.GetValue().GetOrMatch().GetValueMatchers(), c.GetValue()) {
			f.matcher(fmt.Sprintf("%s.dynamic_metadata[%d].value", path, i), one.GetStringMatch())
		}
	}
	for i, q := range m.GetQueryParameters() {
		f.matcher(fmt.Sprintf("%s.query_parameters[%d].string_match", path, i), q.GetStringMatch())
	}
}

func (f *faults) matcher(path string, m *matcherpb.StringMatcher) {
	f.regex(path+".safe_regex", m.GetSafeRegex())
}

// regex checks an expression. How large its program may be is up to each proxy's bootstrap: see regexSize.
func (f *faults) regex(path string, m *matcherpb.RegexMatcher) {
	if m.GetRegex() == "" {
		return // there is none, or its type does not allow it
	}
	if err := envoytext.Regex(m.GetRegex(), 0); err != nil {
		f.add(path, "%s is no regular expression for RE2: %v", cut(m.GetRegex()), err)
		return
	}
	if f.regexSize == 0 {
		return
	}
	if err := envoytext.Regex(m.GetRegex(), f.regexSize); err != nil {
		f.add(path, "%s is too large for proxies without Istio's filters (their runtime key "+
			"re2.max_program_size.error_level): %v", cut(m.GetRegex()), err)
		f.regexSize = 0
	}
}

func (f *faults) substitution(path string, m *matcherpb.RegexMatchAndSubstitute) {
	before := len(f.list)
	if f.regex(path+".pattern", m.GetPattern()); len(f.list) > before {
		return
	}
	if err := envoytext.Template(m.GetSubstitution(), m.GetPattern().GetRegex()); err != nil {
		f.add(path+".substitution", "%s: %v", cut(m.GetSubstitution()), err)
	}
}

func (f *faults) headers(path string, list []*corepb.HeaderValueOption) {
	for i, h := range list {
		at, name := fmt.Sprintf("%s[%d]", path, i), h.GetHeader().GetKey()
		f.changeable(at, name)
		if err := envoytext.Format(h.GetHeader().GetValue()); err != nil {
			f.add(at, "value of header %s: %v", cut(name), err)
		}
	}
}

func (f *faults) removed(path string, names []string) {
	for i, n := range names {
		f.changeable(fmt.Sprintf("%s[%d]", path, i), n)
	}
}

// changeable checks that routes may change a header.
func (f *faults) changeable(path, name string) {
	if strings.HasPrefix(name, ":") || strings.EqualFold(name, "host") {
		f.add(path, "header %s cannot be changed by a route", cut(name))
	}
}

func (f *faults) action(path string, a *routepb.RouteAction) {
	f.duration(path+".timeout", a.GetTimeout())
	f.duration(path+".idle_timeout", a.GetIdleTimeout())
	//lint:ignore SA1019 it is what pilotd sends
	f.duration(path+".max_grpc_timeout", a.GetMaxGrpcTimeout())
	f.duration(path+".max_stream_duration.max_stream_duration", a.GetMaxStreamDuration().GetMaxStreamDuration())
	f.duration(path+".max_stream_duration.grpc_timeout_header_max", a.GetMaxStreamDuration().GetGrpcTimeoutHeaderMax())
	if a.GetPrefixRewrite() != "" && a.GetRegexRewrite() != nil {
		f.add(path, "has both prefix_rewrite and regex_rewrite")
	}
	if re := a.GetRegexRewrite(); re != nil {
		f.substitution(path+".regex_rewrite", re)
	}
	if w := a.GetWeightedClusters(); w != nil {
		f.weighted(path+".weighted_clusters", w)
	}
	f.retry(path+".retry_policy", a.GetRetryPolicy())
	for i, h := range a.GetHashPolicy() {
		at := fmt.Sprintf("%s.hash_policy[%d]", path, i)
		f.duration(at+".cookie.ttl", h.GetCookie().GetTtl())
		if re := h.GetHeader().GetRegexRewrite(); re != nil {
			f.substitution(at+".header.regex_rewrite", re)
		}
	}
}

func (f *faults) weighted(path string, w *routepb.WeightedCluster) {
	var sum uint64
	for i, c := range w.GetClusters() {
		at := fmt.Sprintf("%s.clusters[%d]", path, i)
		sum += uint64(c.GetWeight().GetValue())
		f.headers(at+".request_headers_to_add", c.GetRequestHeadersToAdd())
		f.headers(at+".response_headers_to_add", c.GetResponseHeadersToAdd())
		f.removed(at+".request_headers_to_remove", c.GetRequestHeadersToRemove())
		f.removed(at+".response_headers_to_remove", c.GetResponseHeadersToRemove())
	}
	f.sum(path, sum)
}

// sum checks the sum of weights.
func (f *faults) sum(path string, sum uint64) {
	if sum == 0 || sum > math.MaxUint32 {
		f.add(path, "the sum of the weights is %d, it must be within 1 and %d", sum, uint32(math.MaxUint32))
	}
}

func (f *faults) retry(path string, r *routepb.RetryPolicy) {
	if r == nil {
		return
	}
	f.duration(path+".per_try_timeout", r.GetPerTryTimeout())
	f.duration(path+".per_try_idle_timeout", r.GetPerTryIdleTimeout())
	base, most := r.GetRetryBackOff().GetBaseInterval(), r.GetRetryBackOff().GetMaxInterval()
	f.duration(path+".retry_back_off.base_interval", base)
	f.duration(path+".retry_back_off.max_interval", most)
	if b := r.GetRetryBackOff(); b != nil && base.AsDuration() < time.Millisecond {
		f.add(path+".retry_back_off.base_interval", "is %v, it must be at least 1ms", base.AsDuration())
	}
	if most != nil && most.AsDuration() < base.AsDuration() {
		f.add(path+".retry_back_off.max_interval", "is below the base interval")
	}
}

// maxDuration is the longest that a duration may be, in seconds: above it Envoy cannot hold one in milliseconds.
const maxDuration = 315_576_000_000

// duration checks one that must not be negative; nil is fine.
func (f *faults) duration(path string, d *durationpb.Duration) {
	switch {
	case d == nil:
	case d.GetSeconds() < 0 || d.GetNanos() < 0:
		f.add(path, "is %v, it must not be negative", d.AsDuration())
	case d.GetNanos() > 999_999_999 || d.GetSeconds() > maxDuration:
		f.add(path, "is no duration: %d seconds, %d nanoseconds", d.GetSeconds(), d.GetNanos())
	}
}
