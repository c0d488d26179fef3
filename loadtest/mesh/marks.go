package mesh

import "fmt"

// What edited objects carry before the number of the edit, so that whoever receives it knows which it is: two bytes of
// an address out of those reserved for benchmarks, and a path.
const (
	EndpointMark = "198.18."
	RouteMark    = "/change-"
	// LastMark is the highest number of an edit.
	LastMark = 156*156 - 1
)

// Address returns the address that says n. All are equally long, so that one can stand for another in encoded bytes.
func Address(n int) string { return fmt.Sprintf("%s%d.%d", EndpointMark, 100+n/156, 100+n%156) }

// Path returns the path that says n; all are equally long.
func Path(n int) string { return fmt.Sprintf("%s%05d/", RouteMark, n) }
