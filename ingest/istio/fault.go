package istio

import (
	"strconv"

	"google.golang.org/grpc/codes"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// fault converts fault injection; nil if there is none.
func fault(in *networking.HTTPFaultInjection) *value.Fault {
	out := value.Fault{Delay: duration(in.GetDelay().GetFixedDelay())}
	if d := in.GetDelay(); out.Delay.Set {
		if d.GetPercentage() != nil {
			out.Delayed = millionths(d.GetPercentage())
		} else {
			//lint:ignore SA1019 older objects still use it
			out.Delayed = hundredths(uint32(d.GetPercent()))
		}
	}
	switch e := in.GetAbort().GetErrorType().(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		out.Abort, out.Status = value.HTTPAbort, uint32(e.HttpStatus)
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		out.Abort, out.Status = value.GRPCAbort, grpcStatus(e.GrpcStatus)
	}
	if p := in.GetAbort().GetPercentage(); p != nil && out.Abort != value.NoAbort {
		out.Aborted = millionths(p)
	}
	if out == (value.Fault{}) {
		return nil
	}
	return &out
}

// grpcStatus returns the number of the gRPC status with that name.
func grpcStatus(name string) uint32 {
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(strconv.Quote(name))); err != nil {
		return uint32(codes.Unknown)
	}
	return uint32(c)
}

func cors(in *networking.CorsPolicy) value.CORS {
	out := value.CORS{
		AllowHeaders: list(in.GetAllowHeaders()), AllowMethods: list(in.GetAllowMethods()),
		ExposeHeaders: list(in.GetExposeHeaders()), MaxAge: duration(in.GetMaxAge()),
		AllowCredentials: boolean(in.GetAllowCredentials()),
		IgnoreUnmatched:  in.GetUnmatchedPreflights() == networking.CorsPolicy_IGNORE,
	}
	for _, o := range in.GetAllowOrigins() {
		if o.GetMatchType() != nil {
			out.Origins = append(out.Origins, value.StringMatch{Kind: matchKind(o), Text: matchText(o)})
		}
	}
	if in.GetAllowOrigins() == nil {
		//lint:ignore SA1019 older objects still use it
		for _, o := range in.GetAllowOrigin() {
			out.Origins = append(out.Origins, value.StringMatch{Kind: value.MatchExact, Text: o})
		}
	}
	return out
}
