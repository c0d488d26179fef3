package bench

import "testing"

// short is how far the sizes of a short run go, of those that have no end of their own.
const short = 1000

// upTo returns the powers of ten from first to last, by which the growth of a cost can be read; a short run leaves out
// the large ones.
func upTo(first, last int) (out []int) {
	if testing.Short() {
		last = min(last, max(first, short))
	}
	for n := first; n <= last; n *= 10 {
		out = append(out, n)
	}
	return out
}
