package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pilotd/pilotd/ingest"
)

// specOf returns the message in an object of Istio's; nil in others.
func specOf(k *ingest.Kind, o ingest.Object) ingest.Message {
	if k.Spec == nil {
		return nil
	}
	return k.Spec(o)
}

// unknownVersion says why an object of a kind is not read in a version; empty if it is.
func unknownVersion(k *ingest.Kind, version string) string {
	if slices.Contains(k.Versions, version) {
		return ""
	}
	return fmt.Sprintf("%q is unknown: expected one of %s", version, strings.Join(k.Versions, ", "))
}
