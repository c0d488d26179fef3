package mesh

import "fmt"

// The text before the number in edited objects: an address from the range reserved for benchmarks, whose last two bytes
// are the number, and a path.
const (
	EndpointMark = "198.18."
	RouteMark    = "/change-"
	// LastMark is the highest number of an edit.
	LastMark = 156*156 - 1
)

// Address returns the address that carries n. All are equally long, so that one can replace another in encoded bytes.
func Address(n int) string { return fmt.Sprintf("%s%d.%d", EndpointMark, 100+n/156, 100+n%156) }

// Path returns the path that carries n. All are equally long.
func Path(n int) string { return fmt.Sprintf("%s%05d/", RouteMark, n) }
