package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/agent/capture"
	"github.com/pilotd/pilotd/cmd/program"
)

// notCapturedCode is the exit code for a pod whose traffic is not captured. A controller that repairs such pods
// recognizes them by it.
const notCapturedCode = 126

// probe checks whether the pod's traffic is captured, by connecting to the pod's own address. This works although it
// runs as the proxy's user, whose traffic is otherwise not captured: calls to its own pod come in like any other.
func (c *captureFlags) probe(ctx context.Context, log *slog.Logger) error {
	if uid, gid := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid()); !listed(c.UIDs, uid) &&
		!listed(c.GIDs, gid) && (c.GIDs != "" || !listed(c.UIDs, gid)) {
		return fmt.Errorf("--run-validation: runs as user %s: want one of the proxy's, %s, whose calls of its own pod are "+
			"captured whatever else is", uid, c.UIDs)
	}
	ctx, cancel := context.WithTimeout(ctx, c.probeTime)
	defer cancel()
	for _, a := range c.probed() {
		if err := capture.Probe(ctx, netip.AddrPortFrom(a, c.probePort), c.InboundPort, c.OutboundPort); err != nil {
			return program.WithCode(notCapturedCode, fmt.Errorf("--run-validation: %w", err))
		}
		log.Info("traffic is captured", "address", a)
	}
	return nil
}

// probed returns the pod's first address, or in dual-stack pods the first address of each family.
func (c *captureFlags) probed() (out []netip.Addr) {
	for _, a := range c.addresses {
		if !slices.ContainsFunc(out, func(o netip.Addr) bool { return o.Is6() == a.Is6() }) {
			out = append(out, a)
		}
	}
	if len(out) > 1 && !c.dualStack {
		return out[:1]
	}
	return out
}

func listed(list, one string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool { return strings.TrimSpace(s) == one })
}

// groupNumbers replaces names in a list of groups by their numbers.
func groupNumbers(list string) (string, error) {
	var out []string
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		if _, err := strconv.ParseUint(one, 10, 32); err != nil && one != "*" {
			g, err := user.LookupGroup(one)
			if err != nil {
				return "", fmt.Errorf("%q: want numbers of groups, or names that this image knows: %w", one, err)
			}
			one = g.Gid
		}
		out = append(out, one)
	}
	return strings.Join(out, ","), nil
}
