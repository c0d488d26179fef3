package capture

import (
	"flag"
	"net/netip"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata anew")

// The script that is printed has all that is written; what was reviewed once is in testdata.
func TestText(t *testing.T) {
	for name, c := range map[string]Config{
		"usual": usual(),
		"all": {OutboundPort: 15001, InboundPort: 15006, TunnelPort: 15008, DNSPort: 15053, UIDs: "1337,1338", GIDs: "7",
			OwnerGroups: "202,203", ExcludeOwnerGroups: "204",
			Mode: "REDIRECT", IncludeRanges: "10.0.0.0/8,fd00::/8", ExcludeRanges: "10.9.0.0/16,fd01::1", IncludePorts: "443",
			ExcludePorts: "3306,5432", InboundPorts: "8080,9090", ExcludeInboundPorts: "1", VirtualInterfaces: "net2",
			ExcludeInterfaces: "eth9", DNS: true, DropInvalid: true, IPv6: true,
			Nameservers: []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00::10")}},
		"all queries": {OutboundPort: 15001, InboundPort: 15006, DNSPort: 15053, UIDs: "1337", Mode: "REDIRECT", DNS: true,
			AllDNS: true},
		"transparent": {OutboundPort: 15001, InboundPort: 15006, TunnelPort: 15008, UIDs: "1337", Mode: "TPROXY", Mark: 1337,
			RouteTable: 133, IncludeRanges: "*", InboundPorts: "*", ExcludeInboundPorts: "15090,15021,15020", IPv6: true},
		"none": {OutboundPort: 15001, InboundPort: 15006, UIDs: "1337", Mode: "NONE"},
	} {
		got, err := Text(c)
		if err != nil {
			t.Fatal(name, err)
		}
		path := "testdata/" + strings.ReplaceAll(name, " ", "-") + ".nft"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s differs from %s (-update writes it), %v:\n%s", name, path, err, got)
		}
	}
}

// What cannot be read is refused.
func TestBadConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"REDIRECT, TPROXY or NONE": func(c *Config) { c.Mode = "DIVERT" },
		"a mark and a table":       func(c *Config) { c.Mode = "TPROXY" },
		"ports of the proxy":       func(c *Config) { c.InboundPort = 0 },
		"users":                    func(c *Config) { c.UIDs = "root" },
		"want at least one":        func(c *Config) { c.UIDs = "" },
		"groups of the proxy":      func(c *Config) { c.GIDs = "-1" },
		"groups that are captured": func(c *Config) { c.OwnerGroups = "*,7" },
		"groups that are not":      func(c *Config) { c.ExcludeOwnerGroups = "java" },
		"outbound ranges":          func(c *Config) { c.IncludeRanges = "*,10.0.0.0/8" },
		"excluded outbound ranges": func(c *Config) { c.ExcludeRanges = "*" },
		"inbound ports":            func(c *Config) { c.InboundPorts = "http" },
		"excluded outbound ports":  func(c *Config) { c.ExcludePorts = "65536" },
		"interface":                func(c *Config) { c.ExcludeInterfaces = "abcdefghijklmnop" },
	} {
		c := usual()
		change(&c)
		if _, err := Text(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that says %q, got %v", want, err)
		}
	}
}
