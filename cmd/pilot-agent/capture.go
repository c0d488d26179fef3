package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	mdns "github.com/miekg/dns"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pilotd/pilotd/agent/capture"
	"github.com/pilotd/pilotd/agent/pod"
	"github.com/pilotd/pilotd/cmd/program"
)

// captureFlags are the flags of the container that sets up capture.
type captureFlags struct {
	capture.Config
	dryRun, cleanUp, skipApply, validate bool
	// probePort and probeTime are settings of the check whether capture works.
	probePort uint16
	probeTime time.Duration
	addresses []netip.Addr // the pod's addresses, without loopback
	dualStack bool
	logs      logFlags
}

func captureCommand() *cobra.Command {
	c := captureFlags{Config: capture.Config{DNSPort: 15053}}
	cmd := &cobra.Command{
		Use:     "iptables",
		Aliases: []string{"nftables", "istio-iptables"},
		Short:   "Write the rules that send a pod's traffic through its proxy",
		Long: `Write the rules that send a pod's traffic through its proxy, into the network namespace in which the command runs, in
place of those that an earlier run has written. Flags are those of Istio's init container. Whichever name the command
is called by, it writes rules of nf_tables, directly through the kernel's interface. It needs CAP_NET_ADMIN and no
other program. Lists of ports, addresses, users and interfaces are separated by commas.`,
		Args: cobra.NoArgs,
		// Flags of another release must not keep a pod from starting.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logs.open(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			warnUnknown(cmd.Flags(), os.Args, log)
			return c.run(cmd, log)
		},
	}
	return program.Explain(cmd, c.sections()...)
}

// sections returns the command's flags in the order of its help.
func (c *captureFlags) sections() []program.Section {
	return []program.Section{
		program.Flags("Outbound traffic", c.registerOutbound),
		program.Flags("Inbound traffic", c.registerInbound),
		program.Flags("Traffic that is not captured", c.registerExceptions),
		program.Flags("What to do", c.registerActions),
	}
}

func (c *captureFlags) registerOutbound(f *pflag.FlagSet) {
	f.Uint16VarP(&c.OutboundPort, "envoy-port", "p", 15001, "the proxy's port for outbound connections")
	f.StringVarP(&c.IncludeRanges, "istio-service-cidr", "i", "", "destination addresses to capture; * for all")
	f.StringVarP(&c.ExcludeRanges, "istio-service-exclude-cidr", "x", "", "destination addresses not to capture")
	f.StringVarP(&c.IncludePorts, "istio-outbound-ports", "q", "", "destination ports to capture at any address")
	f.StringVarP(&c.ExcludePorts, "istio-local-outbound-ports-exclude", "o", "", "destination ports not to capture")
	f.StringVarP(&c.VirtualInterfaces, "kube-virt-interfaces", "k", "",
		"interfaces whose inbound traffic counts as outbound, because virtual machines in the pod send it")
	f.BoolVar(&c.DNS, "redirect-dns", false, "capture DNS queries to the pod's DNS servers (ISTIO_META_DNS_CAPTURE)")
	f.BoolVar(&c.AllDNS, "capture-all-dns", false, "capture DNS queries to any server")
}

func (c *captureFlags) registerInbound(f *pflag.FlagSet) {
	f.Uint16VarP(&c.InboundPort, "inbound-capture-port", "z", 15006, "the proxy's port for inbound connections")
	f.StringVarP(&c.InboundPorts, "istio-inbound-ports", "b", "", "ports to capture; * for all")
	f.StringVarP(&c.ExcludeInboundPorts, "istio-local-exclude-ports", "d", "", "ports not to capture, if all are captured")
	f.Uint16VarP(&c.TunnelPort, "inbound-tunnel-port", "e", 15008, "a port that is never captured")
	f.StringVarP(&c.Mode, "istio-inbound-interception-mode", "m", "REDIRECT",
		"REDIRECT rewrites the destination, TPROXY keeps it, NONE captures nothing, outbound traffic included")
	f.Uint32VarP(&c.Mark, "istio-inbound-tproxy-mark", "t", 1337, "for TPROXY: mark of the proxy's packets to the application")
	f.Uint32VarP(&c.RouteTable, "istio-inbound-tproxy-route-table", "r", 133, "for TPROXY: routing table for marked packets")
	f.BoolVar(&c.DropInvalid, "drop-invalid", false, "drop packets that belong to no known connection (INVALID_DROP)")
}

func (c *captureFlags) registerExceptions(f *pflag.FlagSet) {
	f.StringVarP(&c.UIDs, "proxy-uid", "u", "1337", "users that the proxy runs as")
	f.StringVarP(&c.GIDs, "proxy-gid", "g", "", "groups that the proxy runs as; empty: the same numbers as --proxy-uid")
	f.StringVarP(&c.ExcludeInterfaces, "istio-exclude-interfaces", "c", "", "network interfaces")
}

func (c *captureFlags) registerActions(f *pflag.FlagSet) {
	f.BoolVarP(&c.dryRun, "dry-run", "n", false, "print the rules, as a script for nft, and write none")
	f.BoolVar(&c.cleanUp, "cleanup-only", false, "remove the rules that an earlier run has written")
	f.BoolVar(&c.skipApply, "skip-rule-apply", false, "write no rules")
	f.BoolVar(&c.validate, "run-validation", false,
		"check whether traffic is captured, whoever wrote the rules; exit with code 126 if it is not")
	f.Uint16Var(&c.probePort, "iptables-probe-port", 15002, "for --run-validation: port to connect to")
	f.DurationVar(&c.probeTime, "probe-timeout", 5*time.Second, "for --run-validation: how long it may take")
	for _, name := range []string{"force-apply", "native-nftables"} {
		f.Bool(name, false, "no effect: rules are always rules of nf_tables, and always replaced")
	}
	c.logs.register(f)
}

func (c *captureFlags) run(cmd *cobra.Command, log *slog.Logger) error {
	if err := c.environment(log); err != nil {
		return err
	}
	switch {
	case c.cleanUp:
		if c.dryRun {
			c.Mode = "NONE"
			return c.print(cmd)
		}
		return capture.Remove(c.Config)
	case c.dryRun:
		return c.print(cmd)
	case c.skipApply:
		log.Info("no rules are written", "flag", "--skip-rule-apply")
	default:
		if err := capture.Apply(c.Config); err != nil {
			return err
		}
		log.Info("rules are written", "outbound", c.IncludeRanges, "inbound", c.InboundPorts, "dns", c.DNS, "ipv6", c.IPv6)
	}
	if c.validate {
		return c.probe(cmd.Context(), log)
	}
	return nil
}

func (c *captureFlags) print(cmd *cobra.Command) error {
	text, err := capture.Text(c.Config)
	if err == nil {
		_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	}
	return err
}

// family decides whether IPv6 is captured: in pods that have only IPv6, and in dual-stack pods. In other pods the proxy
// listens on IPv4 only, so captured IPv6 connections would be refused.
func (c *captureFlags) family(dualStack bool, log *slog.Logger) {
	c.dualStack = dualStack
	has := slices.ContainsFunc(c.addresses, netip.Addr.Is6)
	c.IPv6 = has && (dualStack || c.cleanUp || c.addresses[0].Is6())
	if has && !c.IPv6 {
		log.Warn("traffic of IPv6 is not captured: the pod has addresses of both families, and ISTIO_DUAL_STACK is not true")
	}
}

// environment reads settings from the container's environment, and the pod's addresses.
func (c *captureFlags) environment(log *slog.Logger) error {
	e := pod.NewEnv(os.Environ())
	c.DNS = c.DNS || e.Bool("ISTIO_META_DNS_CAPTURE", false)
	c.DropInvalid = c.DropInvalid || e.Bool("INVALID_DROP", false)
	for name, to := range map[string]*string{"ISTIO_OUTBOUND_OWNER_GROUPS": &c.OwnerGroups,
		"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE": &c.ExcludeOwnerGroups} {
		var err error
		if *to, err = groupNumbers(e.Text(name, "")); err != nil {
			return fmt.Errorf("environment variable %s: %w", name, err)
		}
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, one := range all {
		if n, ok := one.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(n.IP); ok && a.IsGlobalUnicast() {
				c.addresses = append(c.addresses, a.Unmap())
			}
		}
	}
	c.family(e.Bool("ISTIO_DUAL_STACK", false), log)
	if c.DNS && !c.AllDNS {
		if c.Nameservers, err = nameservers("/etc/resolv.conf"); err != nil {
			return err
		}
	}
	return e.Err()
}

func nameservers(path string) (out []netip.Addr, err error) {
	config, err := mdns.ClientConfigFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("the pod's servers of names: %w", err)
	}
	for _, text := range config.Servers {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("%s: nameserver %q: want an address", path, text)
		}
		out = append(out, a.Unmap().WithZone(""))
	}
	return out, nil
}

// warnUnknown logs flags that are unknown here.
func warnUnknown(f *pflag.FlagSet, args []string, log *slog.Logger) {
	for _, a := range args {
		name, long := strings.CutPrefix(a, "--")
		name, _, _ = strings.Cut(name, "=")
		if long && name != "" && f.Lookup(name) == nil {
			log.Warn("flag is not known here and has no effect", "flag", "--"+name)
		}
	}
}
