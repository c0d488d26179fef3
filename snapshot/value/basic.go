package value

import "fmt"

// Duration is a length of time that may be unset. Comparable, and exact where time.Duration would overflow.
type Duration struct {
	Seconds int64
	Nanos   int32
	Set     bool
}

func (d Duration) String() string {
	if !d.Set {
		return "unset"
	}
	return fmt.Sprintf("%d.%09ds", d.Seconds, d.Nanos)
}

// OptionalBool is a boolean that may be unset. Comparable.
type OptionalBool uint8

// The values of an OptionalBool.
const (
	Unset OptionalBool = iota
	No
	Yes
)

// Or returns the boolean, or def where it is unset.
func (b OptionalBool) Or(def bool) bool {
	if b == Unset {
		return def
	}
	return b == Yes
}

// Fraction is Parts of Of, which is a hundred or a million; Of is 0 where it is unset. Comparable.
type Fraction struct {
	Parts, Of uint32
}

// MatchKind is the way in which a text is matched.
type MatchKind uint8

// The ways in which a text is matched. MatchPresent is any text, as long as there is one.
const (
	MatchPresent MatchKind = iota
	MatchExact
	MatchPrefix
	MatchRegex
)

func (k MatchKind) String() string {
	return [...]string{"present", "exact", "prefix", "regex"}[k]
}

// StringMatch is a condition on a text. Comparable.
type StringMatch struct {
	Kind MatchKind
	Text string
}

// NamedMatch is a condition on the header or parameter of that name.
type NamedMatch struct {
	Name  string
	Match StringMatch
}
