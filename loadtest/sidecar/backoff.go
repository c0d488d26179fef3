package sidecar

import (
	"math"
	"time"
)

// backoff is how long a client waits before it tries again, ever longer.
type backoff struct{ failures int }

// Envoy's: any time up to an interval that doubles. gRPC's: an interval that grows, a fifth more or less.
const (
	envoyBase, envoyMost = 500 * time.Millisecond, 30 * time.Second
	grpcBase, grpcMost   = time.Second, 120 * time.Second
	grpcGrowth           = 1.6
	grpcJitter           = 0.2
)

// next returns the wait after one more failure; random is from 0 to 1.
func (b *backoff) next(k Kind, random float64) time.Duration {
	n := float64(b.failures)
	b.failures++
	if k == Proxyless {
		return time.Duration(min(float64(grpcBase)*math.Pow(grpcGrowth, n),
			float64(grpcMost)) * (1 + grpcJitter*(2*random-1)))
	}
	return time.Duration(random * min(float64(envoyBase)*math.Pow(2, n), float64(envoyMost)))
}
