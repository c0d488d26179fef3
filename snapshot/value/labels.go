package value

import (
	"slices"
	"strings"
)

// LabelsKey returns a canonical form of a label set, equal for equal sets: "k=v,k=v", sorted by key.
func LabelsKey(l Labels) string {
	if len(l) == 0 {
		return ""
	}
	pairs := make([]string, 0, len(l))
	for k, v := range l {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
