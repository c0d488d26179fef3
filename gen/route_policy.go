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
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// Defaults of retries.
const (
	defaultRetryOn    = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
	defaultRetries    = 2
	retryHostAttempts = 5
	retryByStatus     = "retriable-status-codes"
)

// retryPolicy is in, with defaults for what it does not say; nil if it forbids retries. sticky: the request is bound to
// a host by a hash, and is tried again there.
func retryPolicy(in *networking.HTTPRetry, sticky bool) *routepb.RetryPolicy {
	out := &routepb.RetryPolicy{
		NumRetries: wrapperspb.UInt32(defaultRetries), RetryOn: defaultRetryOn,
		HostSelectionRetryMaxAttempts: retryHostAttempts,
	}
	elsewhere := !sticky
	if in != nil {
		if in.GetAttempts() <= 0 {
			return nil
		}
		out.NumRetries = wrapperspb.UInt32(uint32(in.GetAttempts()))
		if in.GetRetryOn() != "" {
			out.RetryOn, out.RetriableStatusCodes = retryConditions(in.GetRetryOn())
		}
		out.PerTryTimeout = in.GetPerTryTimeout()
		if in.GetRetryIgnorePreviousHosts() != nil {
			elsewhere = in.GetRetryIgnorePreviousHosts().GetValue()
		}
		if in.GetRetryRemoteLocalities().GetValue() {
			out.RetryPriority = &routepb.RetryPolicy_RetryPriority{
				Name: "envoy.retry_priorities.previous_priorities",
				ConfigType: &routepb.RetryPolicy_RetryPriority_TypedConfig{
					TypedConfig: anyOf(&previousprioritiespb.PreviousPrioritiesConfig{UpdateFrequency: 2}),
				},
			}
		}
		if in.GetBackoff() != nil {
			out.RetryBackOff = &routepb.RetryPolicy_RetryBackOff{BaseInterval: in.GetBackoff()}
		}
	}
	if elsewhere {
		out.RetryHostPredicate = []*routepb.RetryPolicy_RetryHostPredicate{{
			Name:       "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routepb.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: anyOf(&previoushostspb.PreviousHostsPredicate{})},
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

// filterConfigs are the settings of HTTP filters for one route.
func filterConfigs(h *networking.HTTPRoute, proxyless bool) map[string]*anypb.Any {
	out := map[string]*anypb.Any{}
	if f := fault(h.GetFault()); f != nil {
		out[faultFilter] = anyOf(f)
	}
	if c := h.GetCorsPolicy(); c != nil && !proxyless {
		out[corsFilter] = anyOf(cors(c))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func fault(in *networking.HTTPFaultInjection) *faultpb.HTTPFault {
	out := &faultpb.HTTPFault{}
	if d := in.GetDelay(); d.GetFixedDelay() != nil {
		out.Delay = &faultcommonpb.FaultDelay{FaultDelaySecifier: &faultcommonpb.FaultDelay_FixedDelay{FixedDelay: d.GetFixedDelay()}}
		if d.GetPercentage() != nil {
			out.Delay.Percentage = percent(d.GetPercentage())
		} else {
			//lint:ignore SA1019 old objects still have it
			out.Delay.Percentage = hundredths(uint32(d.GetPercent()))
		}
	}
	switch e := in.GetAbort().GetErrorType().(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		out.Abort = &faultpb.FaultAbort{ErrorType: &faultpb.FaultAbort_HttpStatus{HttpStatus: uint32(e.HttpStatus)}}
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		out.Abort = &faultpb.FaultAbort{ErrorType: &faultpb.FaultAbort_GrpcStatus{GrpcStatus: grpcStatus(e.GrpcStatus)}}
	}
	if p := in.GetAbort().GetPercentage(); p != nil && out.Abort != nil {
		out.Abort.Percentage = percent(p)
	}
	if out.Delay == nil && out.Abort == nil {
		return nil
	}
	return out
}

// grpcStatus is the number of a status that is given by name, as JSON has it.
func grpcStatus(name string) uint32 {
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(strconv.Quote(name))); err != nil {
		return uint32(codes.Unknown)
	}
	return uint32(c)
}

func cors(in *networking.CorsPolicy) *corspb.CorsPolicy {
	out := &corspb.CorsPolicy{
		ForwardNotMatchingPreflights: wrapperspb.Bool(in.GetUnmatchedPreflights() != networking.CorsPolicy_IGNORE),
		FilterEnabled:                &corepb.RuntimeFractionalPercent{DefaultValue: hundredths(100)},
		AllowCredentials:             in.GetAllowCredentials(),
		AllowHeaders:                 strings.Join(in.GetAllowHeaders(), ","),
		AllowMethods:                 strings.Join(in.GetAllowMethods(), ","),
		ExposeHeaders:                strings.Join(in.GetExposeHeaders(), ","),
	}
	for _, o := range in.GetAllowOrigins() {
		if m := stringMatcher(o); m != nil {
			out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, m)
		}
	}
	if in.GetAllowOrigins() == nil {
		//lint:ignore SA1019 old objects still have it
		for _, o := range in.GetAllowOrigin() {
			out.AllowOriginStringMatch = append(out.AllowOriginStringMatch,
				&matcherpb.StringMatcher{MatchPattern: &matcherpb.StringMatcher_Exact{Exact: o}})
		}
	}
	if in.GetMaxAge() != nil {
		out.MaxAge = strconv.FormatInt(in.GetMaxAge().GetSeconds(), 10)
	}
	return out
}
