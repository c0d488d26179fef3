package sidecar

import (
	"math"
	"time"
)

// backoff computes how long a client waits before its next attempt.
type backoff struct{ failures int }

// Envoy waits a random time up to an interval that doubles. gRPC waits an interval that grows, plus or minus a fifth.
const (
	envoyBase, envoyMost = 500 * time.Millisecond, 30 * time.Second
	grpcBase, grpcMost   = time.Second, 120 * time.Second
	grpcGrowth           = 1.6
	grpcJitter           = 0.2
)

// next returns the wait after one more failure. random is between 0 and 1.
func (b *backoff) next(k Kind, random float64) time.Duration {
	n := float64(b.failures)
	b.failures++
	if k == Proxyless {
		return time.Duration(min(float64(grpcBase)*math.Pow(grpcGrowth, n),
			float64(grpcMost)) * (1 + grpcJitter*(2*random-1)))
	}
	return time.Duration(random * min(float64(envoyBase)*math.Pow(2, n), float64(envoyMost)))
}
