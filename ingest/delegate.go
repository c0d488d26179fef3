package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/pilotd/pilotd/ingest/istio"
	"github.com/pilotd/pilotd/snapshot/value"
)

// A VirtualService without hosts is a delegate: it applies only as a part of other VirtualServices, the roots, whose
// routes name it. The joiner publishes a root with the delegates' routes in place of its own, so that no code outside
// this file has to know about delegates.

// isDelegate reports whether a VirtualService is a delegate.
func isDelegate(o *clientnet.VirtualService) bool { return len(o.Spec.GetHosts()) == 0 }

// putVirtualService records a VirtualService and the delegates that it names.
func (j *joiner) putVirtualService(key value.ObjectKey, object any) {
	for _, d := range delegatesOf(key, j.rules[key]) {
		j.roots.remove(d, key)
	}
	for _, d := range delegatesOf(key, object) {
		j.roots.add(d, key)
	}
	for root := range j.roots[key] {
		j.marks.objects.add(root)
	}
	delete(j.regexSizes, key)
	if o, ok := object.(*clientnet.VirtualService); ok {
		if n := largestRegex(&o.Spec); n > 0 {
			j.regexSizes[key] = n
		}
	}
	j.putRule(key, object)
}

// delegatesOf returns the keys of the delegates that the routes of an object name, without duplicates; none if the
// object is not a VirtualService.
func delegatesOf(root value.ObjectKey, object any) (out []value.ObjectKey) {
	o, ok := object.(*clientnet.VirtualService)
	if !ok {
		return nil
	}
	for _, r := range o.Spec.GetHttp() {
		if d := r.GetDelegate(); d != nil {
			k := root
			k.Name, k.Namespace = d.GetName(), cmp.Or(d.GetNamespace(), o.Namespace)
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// resolve returns the value of a VirtualService with the routes of its delegates; nil for a delegate.
func (j *joiner) resolve(key value.ObjectKey, o *clientnet.VirtualService) *value.VirtualService {
	if isDelegate(o) {
		return nil
	}
	root, spec := &value.VirtualService{Meta: metaOf(key, o.ObjectMeta), Export: j.exportOf(o)}, j.qualified(o)
	if len(delegatesOf(key, o)) > 0 {
		j.include(root, spec)
	}
	root.Routing = istio.Routing(spec)
	root.RegexSize = j.regexSizes[root.Object()]
	for _, d := range root.Delegates {
		root.RegexSize = max(root.RegexSize, j.regexSizes[d])
	}
	return root
}

// include replaces those routes of the root that name a delegate by the delegate's routes.
func (j *joiner) include(root *value.VirtualService, spec *networking.VirtualService) {
	var routes []*networking.HTTPRoute
	for i, r := range spec.Http {
		if r.Delegate == nil {
			routes = append(routes, r)
			continue
		}
		parts, why := j.delegated(root, r.Delegate)
		if why != "" {
			j.unresolved.add(root.Object(), item("spec.http", i)+".delegate",
				why+"; the route is left out: its requests take a later route that matches them, or get 404")
		}
		for _, part := range parts {
			if joinRoute(r, part) {
				routes = append(routes, part)
			}
		}
	}
	spec.Http = routes
}

// delegated returns a copy of the routes of a delegate, which the caller may write, and records the delegate in
// root.Delegates. If the delegate does not exist, has hosts itself, or is not exported to the root's namespace, it
// returns the reason instead.
func (j *joiner) delegated(root *value.VirtualService, d *networking.Delegate) (routes []*networking.HTTPRoute,
	why string) {
	key := root.Object()
	key.Namespace, key.Name = d.GetNamespace(), d.GetName()
	o, ok := j.rules[key].(*clientnet.VirtualService)
	if !ok {
		return nil, fmt.Sprintf("there is no %v", key)
	}
	if !isDelegate(o) {
		return nil, fmt.Sprintf("%v has hosts of its own, and so is no delegate", key)
	}
	if !j.exportOf(o).VisibleTo(root.Namespace) {
		return nil, fmt.Sprintf("%v is not exported to namespace %s", key, root.Namespace)
	}
	if !slices.Contains(root.Delegates, key) {
		root.Delegates = append(root.Delegates, key)
	}
	return j.qualified(o).Http, ""
}

// joinRoute changes part, a delegate's route, into one that is valid under the root's route r: it matches what both
// match, and takes r's settings where it has none of its own. It reports false if no request matches both.
func joinRoute(r, part *networking.HTTPRoute) bool {
	matches, ok := joinMatches(r.Match, part.Match)
	if !ok {
		return false
	}
	part.Match, part.Name = matches, joinName(r.Name, part.Name)
	orElse(&part.Rewrite, r.Rewrite)
	orElse(&part.Timeout, r.Timeout)
	orElse(&part.Retries, r.Retries)
	orElse(&part.Fault, r.Fault)
	orElse(&part.Mirror, r.Mirror)
	//lint:ignore SA1019 older objects still use it
	orElse(&part.MirrorPercent, r.MirrorPercent)
	orElse(&part.MirrorPercentage, r.MirrorPercentage)
	orElse(&part.CorsPolicy, r.CorsPolicy)
	orElse(&part.Headers, r.Headers)
	if part.Mirrors == nil {
		part.Mirrors = r.Mirrors
	}
	return true
}

// orElse sets *field to other if it is not set.
func orElse[T any](field **T, other *T) {
	if *field == nil {
		*field = other
	}
}

// joinName returns the name of a delegate's route under the root's route.
func joinName(root, part string) string {
	if root == "" || part == "" {
		return root + part
	}
	return root + "-" + part
}

// joinMatches returns the matches of a delegate's route under the root's: each match of the delegate combined with
// every compatible one of the root. It reports false if a match of the delegate is compatible with none of the root's.
func joinMatches(root, part []*networking.HTTPMatchRequest) ([]*networking.HTTPMatchRequest, bool) {
	switch {
	case len(root) == 0:
		return part, true
	case len(part) == 0:
		return root, true
	}
	var out []*networking.HTTPMatchRequest
	for _, p := range part {
		before := len(out)
		for _, r := range root {
			if compatible(r, p) {
				out = append(out, joinMatch(r, p))
			}
		}
		if len(out) == before {
			return nil, false
		}
	}
	return out, true
}

// joinMatch returns a match that asks for what both ask for; where both say something, the delegate's part says more.
func joinMatch(root, part *networking.HTTPMatchRequest) *networking.HTTPMatchRequest {
	out := clone(part)
	out.Name = joinName(root.Name, part.Name)
	orElse(&out.Uri, root.Uri)
	orElse(&out.Scheme, root.Scheme)
	orElse(&out.Method, root.Method)
	orElse(&out.Authority, root.Authority)
	out.Headers = joinMaps(root.Headers, part.Headers)
	out.WithoutHeaders = joinMaps(root.WithoutHeaders, part.WithoutHeaders)
	out.QueryParams = joinMaps(root.QueryParams, part.QueryParams)
	out.SourceLabels = joinMaps(root.SourceLabels, part.SourceLabels)
	if out.Port == 0 {
		out.Port = root.Port
	}
	if out.SourceNamespace == "" {
		out.SourceNamespace = root.SourceNamespace
	}
	if len(out.Gateways) == 0 {
		out.Gateways = root.Gateways
	}
	if out.StatPrefix == "" {
		out.StatPrefix = root.StatPrefix
	}
	return out
}

// joinMaps returns root with the pairs of part, which win.
func joinMaps[V any](root, part map[string]V) map[string]V {
	if len(root) == 0 {
		return part
	}
	out := maps.Clone(root)
	maps.Copy(out, part)
	return out
}

// compatible reports whether a delegate's match can be one within the root's: nothing that it asks for contradicts what
// the root asks for.
func compatible(root, part *networking.HTTPMatchRequest) bool {
	return within(root.Uri, part.Uri) && within(root.Scheme, part.Scheme) && within(root.Method, part.Method) &&
		within(root.Authority, part.Authority) &&
		allWithin(root.Headers, part.Headers) && allWithin(root.WithoutHeaders, part.WithoutHeaders) &&
		allWithin(root.QueryParams, part.QueryParams) &&
		root.IgnoreUriCase == part.IgnoreUriCase &&
		(root.Port == 0 || part.Port == 0 || root.Port == part.Port) &&
		(root.SourceNamespace == "" || root.SourceNamespace == part.SourceNamespace) &&
		sameLabels(root.SourceLabels, part.SourceLabels) && gatewaysWithin(root.Gateways, part.Gateways)
}

func allWithin(root, part map[string]*networking.StringMatch) bool {
	for name, p := range part {
		if !within(root[name], p) {
			return false
		}
	}
	return true
}

// within reports whether what part matches is among what root matches, as far as the two can be compared: where both
// say something, neither may be a regular expression, and an exact value or a prefix is within a prefix that begins it.
func within(root, part *networking.StringMatch) bool {
	if root == nil || part == nil {
		return true
	}
	if root.GetExact() != "" {
		return part.GetExact() == root.GetExact()
	}
	longer := part.GetExact() + part.GetPrefix() // of which one is set
	return root.GetPrefix() != "" && longer != "" && strings.HasPrefix(longer, root.GetPrefix())
}

// sameLabels reports whether no label has another value in both.
func sameLabels(root, part map[string]string) bool {
	for k, v := range part {
		if r, ok := root[k]; ok && r != v {
			return false
		}
	}
	return true
}

// gatewaysWithin reports whether the gateways of a delegate's match are among the root's, if both name any.
func gatewaysWithin(root, part []string) bool {
	if len(root) == 0 || len(part) == 0 {
		return true
	}
	return len(part) <= len(root) &&
		!slices.ContainsFunc(part, func(g string) bool { return !slices.Contains(root, g) })
}
