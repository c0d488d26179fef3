package gen

import (
	"net/http"
	"strconv"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultcommonpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	corspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	previoushostspb "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	previousprioritiespb "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Defaults of retries.
const (
	defaultRetryOn    = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
	defaultRetries    = 2
	retryHostAttempts = 5
	retryByStatus     = "retriable-status-codes"
)

// retryPolicy returns in, with defaults for what it does not say; nil if it forbids retries. sticky: the request is
// bound to a host by a hash, and is tried again there.
func retryPolicy(in *value.Retries, sticky bool) *routepb.RetryPolicy {
	out := &routepb.RetryPolicy{
		NumRetries: wrapperspb.UInt32(defaultRetries), RetryOn: defaultRetryOn,
		HostSelectionRetryMaxAttempts: retryHostAttempts,
	}
	elsewhere := !sticky
	if in != nil {
		if in.Attempts == 0 {
			return nil
		}
		out.NumRetries = wrapperspb.UInt32(in.Attempts)
		if in.On != "" {
			out.RetryOn, out.RetriableStatusCodes = retryConditions(in.On)
		}
		out.PerTryTimeout = duration(in.PerTryTimeout)
		elsewhere = in.AvoidHosts.Or(elsewhere)
		if in.RemoteLocalities {
			out.RetryPriority = &routepb.RetryPolicy_RetryPriority{
				Name: "envoy.retry_priorities.previous_priorities",
				ConfigType: &routepb.RetryPolicy_RetryPriority_TypedConfig{
					TypedConfig: anyOf(&previousprioritiespb.PreviousPrioritiesConfig{UpdateFrequency: 2}),
				},
			}
		}
		if in.Backoff.Set {
			out.RetryBackOff = &routepb.RetryPolicy_RetryBackOff{BaseInterval: duration(in.Backoff)}
		}
	}
	if elsewhere {
		out.RetryHostPredicate = []*routepb.RetryPolicy_RetryHostPredicate{{
			Name: "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routepb.RetryPolicy_RetryHostPredicate_TypedConfig{
				TypedConfig: anyOf(&previoushostspb.PreviousHostsPredicate{})},
		}}
	}
	return out
}

// retryConditions splits a list of conditions from the status codes in it.
func retryConditions(in string) (conditions string, codes []uint32) {
	var words []string
	for _, w := range strings.Split(in, ",") {
		w = strings.TrimSpace(w)
		if n, err := strconv.Atoi(w); err == nil && http.StatusText(n) != "" {
			codes = append(codes, uint32(n))
		} else if w != "" {
			words = append(words, w)
		}
	}
	conditions = strings.Join(words, ",")
	if len(codes) > 0 && !strings.Contains(conditions, retryByStatus) {
		conditions += "," + retryByStatus
	}
	return conditions, codes
}

// filterConfigs returns the settings of HTTP filters for one route.
func filterConfigs(h *value.HTTPRoute, proxyless bool) map[string]*anypb.Any {
	out := map[string]*anypb.Any{}
	if h.Fault != nil {
		out[faultFilter] = anyOf(fault(h.Fault))
	}
	if h.CORS != nil && !proxyless {
		out[corsFilter] = anyOf(cors(h.CORS))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func fault(in *value.Fault) *faultpb.HTTPFault {
	out := &faultpb.HTTPFault{}
	if in.Delay.Set {
		out.Delay = &faultcommonpb.FaultDelay{
			FaultDelaySecifier: &faultcommonpb.FaultDelay_FixedDelay{FixedDelay: duration(in.Delay)},
			Percentage:         fraction(in.Delayed)}
	}
	switch in.Abort {
	case value.HTTPAbort:
		out.Abort = &faultpb.FaultAbort{ErrorType: &faultpb.FaultAbort_HttpStatus{HttpStatus: in.Status},
			Percentage: fraction(in.Aborted)}
	case value.GRPCAbort:
		out.Abort = &faultpb.FaultAbort{ErrorType: &faultpb.FaultAbort_GrpcStatus{GrpcStatus: in.Status},
			Percentage: fraction(in.Aborted)}
	}
	return out
}

func cors(in *value.CORS) *corspb.CorsPolicy {
	out := &corspb.CorsPolicy{
		ForwardNotMatchingPreflights: wrapperspb.Bool(!in.IgnoreUnmatched),
		FilterEnabled: &corepb.RuntimeFractionalPercent{
			DefaultValue: fraction(value.Fraction{Parts: 100, Of: 100})},
		AllowCredentials: boolean(in.AllowCredentials),
		AllowHeaders:     strings.Join(in.AllowHeaders, ","),
		AllowMethods:     strings.Join(in.AllowMethods, ","),
		ExposeHeaders:    strings.Join(in.ExposeHeaders, ","),
	}
	for _, o := range in.Origins {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, stringMatcher(o))
	}
	if in.MaxAge.Set {
		out.MaxAge = strconv.FormatInt(in.MaxAge.Seconds, 10)
	}
	return out
}

// boolean returns b as messages have it; nil where it is unset.
func boolean(b value.OptionalBool) *wrapperspb.BoolValue {
	if b == value.Unset {
		return nil
	}
	return wrapperspb.Bool(b == value.Yes)
}
