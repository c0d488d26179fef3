package ingest

import (
	"iter"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/envoytext"
)

// largestRegex returns the size in instructions of the largest RE2 program among the regular expressions of a
// VirtualService; 0 if it has none.
func largestRegex(spec *networking.VirtualService) (size int) {
	var m envoytext.Meter
	for _, r := range spec.GetHttp() {
		for expression := range expressions(r) {
			n, _ := m.Size(expression) // n is 0 for one that is invalid; generation leaves that out for every proxy
			size = max(size, n)
		}
	}
	return size
}

// expressions yields the regular expressions of a route.
func expressions(r *networking.HTTPRoute) iter.Seq[string] {
	return func(yield func(string) bool) {
		match := func(m *networking.StringMatch) bool { return m.GetRegex() == "" || yield(m.GetRegex()) }
		matches := func(all map[string]*networking.StringMatch) bool {
			for _, m := range all {
				if !match(m) {
					return false
				}
			}
			return true
		}
		for _, m := range r.GetMatch() {
			if !match(m.GetUri()) || !match(m.GetScheme()) || !match(m.GetMethod()) || !match(m.GetAuthority()) ||
				!matches(m.GetHeaders()) || !matches(m.GetWithoutHeaders()) || !matches(m.GetQueryParams()) {
				return
			}
		}
		for _, o := range r.GetCorsPolicy().GetAllowOrigins() {
			if !match(o) {
				return
			}
		}
		if e := r.GetRewrite().GetUriRegexRewrite().GetMatch(); e != "" {
			yield(e)
		}
	}
}
