package envoy

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// askTime is how long Envoy may take to look at its command line.
const askTime = 10 * time.Second

// KnownComponents returns, of levels of logging by component ("misc:error,xds:debug"), those whose components an Envoy
// knows, and the names of the others: components come and go with releases, and with one that it does not know an Envoy
// would not start. Envoy names one at a time.
func KnownComponents(ctx context.Context, binary, levels string) (known string, unknown []string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	parts := strings.Split(levels, ",")
	component := func(part string) string {
		name, _, _ := strings.Cut(part, ":")
		return strings.TrimSpace(name)
	}
	// The usual one has always been there.
	for slices.ContainsFunc(parts, func(p string) bool { return component(p) != "misc" && component(p) != "" }) {
		// With this flag Envoy reads all others, and ends before it opens anything.
		said, err := exec.CommandContext(ctx, binary, "--component-log-level", strings.Join(parts, ","), // #nosec G204
			"--hot-restart-version").CombinedOutput()
		_, after, found := strings.Cut(string(said), "invalid component specified '")
		name, _, _ := strings.Cut(after, "'")
		left := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return component(p) == name })
		if err == nil || !found || len(left) == len(parts) {
			break
		}
		parts, unknown = left, append(unknown, name)
	}
	return strings.Join(parts, ","), unknown
}
