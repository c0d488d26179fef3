package istio

import (
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

func duration(d *durationpb.Duration) value.Duration {
	if d == nil {
		return value.Duration{}
	}
	return value.Duration{Seconds: d.GetSeconds(), Nanos: d.GetNanos(), Set: true}
}

func boolean(b *wrapperspb.BoolValue) value.OptionalBool {
	switch {
	case b == nil:
		return value.Unset
	case b.GetValue():
		return value.Yes
	}
	return value.No
}

// millionths converts a percentage, which may have decimals, to Envoy's fraction.
func millionths(p *networking.Percent) value.Fraction {
	return value.Fraction{Parts: uint32(p.GetValue() * 10000), Of: 1_000_000}
}

func hundredths(n uint32) value.Fraction { return value.Fraction{Parts: n, Of: 100} }

// list returns s, or nil if it is empty.
func list(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s
}

// each returns the results of f for the elements of in; nil if there are none.
func each[A, B any](in []A, f func(A) B) []B {
	if len(in) == 0 {
		return nil
	}
	out := make([]B, 0, len(in))
	for _, a := range in {
		out = append(out, f(a))
	}
	return out
}

// optional returns the result of f for a message, or nil if there is no message.
func optional[A, B any](in *A, f func(*A) B) *B {
	if in == nil {
		return nil
	}
	out := f(in)
	return &out
}
