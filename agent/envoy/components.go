package envoy

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// askTime is how long Envoy may take to validate its command line.
const askTime = 10 * time.Second

// KnownComponents splits component log levels such as "misc:error,xds:debug" into those whose component this Envoy
// knows, and the names of the others. Releases of Envoy add and remove components, and Envoy does not start with one
// that it does not know. It names one unknown component at a time, so it is run once for each.
func KnownComponents(ctx context.Context, binary, levels string) (known string, unknown []string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	parts := strings.Split(levels, ",")
	component := func(part string) string {
		name, _, _ := strings.Cut(part, ":")
		return strings.TrimSpace(name)
	}
	// Every Envoy knows the component misc, so levels of misc alone need no check.
	for slices.ContainsFunc(parts, func(p string) bool { return component(p) != "misc" && component(p) != "" }) {
		// With this flag Envoy checks its other flags and exits before it opens anything.
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
