// Package build says from which version and commit a program was built.
package build

import (
	_ "embed"
	"strings"
)

// text is the version, and behind a space the commit. A release is built with another file in its place.
//
//go:embed version.txt
var text string

// Version returns the version of this build: v1.2.3, or "devel" if it is not a release.
func Version() string {
	version, _, _ := strings.Cut(Text(), " ")
	return version
}

// Text returns Version, and the commit if it is known.
func Text() string { return strings.TrimSpace(text) }
