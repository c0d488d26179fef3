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
		Long: `Write the rules that send a pod's traffic through its proxy, in the network namespace that it runs in, in place of
those that it has written before. Arguments are those of Istio's init container. Under each of its names it writes
rules of nf_tables, by the kernel's own interface: it needs no other program. It needs CAP_NET_ADMIN.`,
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
	c.register(cmd.Flags())
	return cmd
}

func (c *captureFlags) register(f *pflag.FlagSet) {
	f.Uint16VarP(&c.OutboundPort, "envoy-port", "p", 15001, "the proxy's port for what applications open")
	f.Uint16VarP(&c.InboundPort, "inbound-capture-port", "z", 15006, "the proxy's port for what arrives")
	f.Uint16VarP(&c.TunnelPort, "inbound-tunnel-port", "e", 15008, "port that is never captured when it arrives")
	f.StringVarP(&c.UIDs, "proxy-uid", "u", "1337", "users whose traffic is the proxy's own")
	f.StringVarP(&c.GIDs, "proxy-gid", "g", "", "groups whose traffic is the proxy's own; called as the users when empty")
	f.StringVarP(&c.Mode, "istio-inbound-interception-mode", "m", "REDIRECT", "how what arrives gets to the proxy: REDIRECT, TPROXY or NONE")
	f.Uint32VarP(&c.Mark, "istio-inbound-tproxy-mark", "t", 1337, "for TPROXY: what the proxy marks its calls of the application with")
	f.Uint32VarP(&c.RouteTable, "istio-inbound-tproxy-route-table", "r", 133, "for TPROXY: table of routes for what is marked")
	f.StringVarP(&c.IncludeRanges, "istio-service-cidr", "i", "", "destinations that are captured; * for all")
	f.StringVarP(&c.ExcludeRanges, "istio-service-exclude-cidr", "x", "", "destinations that are not")
	f.StringVarP(&c.InboundPorts, "istio-inbound-ports", "b", "", "ports that are captured when something arrives; * for all")
	f.StringVarP(&c.ExcludeInboundPorts, "istio-local-exclude-ports", "d", "", "ports that are not, where all are")
	f.StringVarP(&c.IncludePorts, "istio-outbound-ports", "q", "", "ports of destinations that are captured whatever the range")
	f.StringVarP(&c.ExcludePorts, "istio-local-outbound-ports-exclude", "o", "", "ports of destinations that are not")
	f.StringVarP(&c.VirtualInterfaces, "kube-virt-interfaces", "k", "",
		"interfaces whose arriving traffic is treated as what applications open")
	f.StringVarP(&c.ExcludeInterfaces, "istio-exclude-interfaces", "c", "", "interfaces that are left alone")
	f.BoolVar(&c.DNS, "redirect-dns", false, "capture DNS queries to the pod's servers (ISTIO_META_DNS_CAPTURE)")
	f.BoolVar(&c.AllDNS, "capture-all-dns", false, "capture DNS queries to all servers")
	f.BoolVar(&c.DropInvalid, "drop-invalid", false, "drop packets that belong to no connection (INVALID_DROP)")
	f.BoolVarP(&c.dryRun, "dry-run", "n", false, "print the rules, as a script for nft, and write none")
	f.BoolVar(&c.cleanUp, "cleanup-only", false, "take away the rules that it has written before")
	f.BoolVar(&c.skipApply, "skip-rule-apply", false, "write no rules")
	f.BoolVar(&c.validate, "run-validation", false,
		"find out whether traffic is captured, by whoever has written rules; ends with code 126 if not")
	f.Uint16Var(&c.probePort, "iptables-probe-port", 15002, "for --run-validation: port that is connected to")
	f.DurationVar(&c.probeTime, "probe-timeout", 5*time.Second, "for --run-validation: how long that may take")
	for _, name := range []string{"force-apply", "native-nftables"} {
		f.Bool(name, false, "accepted, without effect: rules are always those of nf_tables, and always replaced")
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
