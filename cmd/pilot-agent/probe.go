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

// notCapturedCode is how the process ends whose pod is not captured. Who watches pods knows by it which ones to start
// anew.
const notCapturedCode = 126

// probe finds out whether the pod's traffic is captured. What the proxy's user opens passes, but for calls of its own
// pod, which come in like any other; so it connects to the pod.
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

// probed are the pod's first address, and with dual stack the first one of each family.
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

// groupNumbers has the number in place of each name of a list of groups.
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
