package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/ingest"
)

// specOf returns the spec message of an Istio object; nil for other kinds.
func specOf(k *ingest.Kind, o ingest.Object) ingest.Message {
	if k.Spec == nil {
		return nil
	}
	return k.Spec(o)
}

// unknownVersion says why pilotd does not read a kind in this version; empty if it does.
func unknownVersion(k *ingest.Kind, version string) string {
	if slices.Contains(k.Versions, version) {
		return ""
	}
	return fmt.Sprintf("%q is unknown: expected one of %s", version, strings.Join(k.Versions, ", "))
}
