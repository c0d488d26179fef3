package ingest

import (
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
)

func checkDestinationRule(o *clientnet.DestinationRule) *problem {
	c, spec := &check{}, &o.Spec
	c.routedHost("spec.host", spec.Host)
	c.policy("spec.trafficPolicy", spec.TrafficPolicy)
	names := set[string]{}
	for i, s := range spec.Subsets {
		at := item("spec.subsets", i)
		c.that(isLabel(s.GetName()), at+".name", "expected a name, got %q", s.GetName())
		c.that(firstTime(names, s.GetName()), at+".name", "%q is defined twice", s.GetName())
		c.labels(at+".labels", s.GetLabels())
		c.policy(at+".trafficPolicy", s.GetTrafficPolicy())
	}
	c.labels("spec.workloadSelector.matchLabels", spec.GetWorkloadSelector().GetMatchLabels())
	c.exportTo(spec.ExportTo, o.Namespace, false)
	c.that(spec.WorkloadSelector == nil || len(spec.ExportTo) == 0 || len(spec.ExportTo) == 1 &&
		(spec.ExportTo[0] == "." || spec.ExportTo[0] == o.Namespace),
		"spec.exportTo", `expected only "." beside workloadSelector`)
	return c.first
}

func (c *check) policy(at string, p *networking.TrafficPolicy) {
	if p == nil {
		return
	}
	c.that(p.LoadBalancer != nil || p.ConnectionPool != nil || p.OutlierDetection != nil || p.Tls != nil ||
		p.PortLevelSettings != nil || p.Tunnel != nil ||
		p.ProxyProtocol != nil || p.RetryBudget != nil, at, "expected at least one setting")
	c.that(p.Tunnel == nil || p.ProxyProtocol == nil, at, "expected only one of tunnel and proxyProtocol")
	c.part(at, p.LoadBalancer, p.ConnectionPool, p.OutlierDetection)
	c.clientTLS(at+".tls", p.Tls)
	c.retryBudget(at+".retryBudget", p.RetryBudget)
	for i, s := range p.PortLevelSettings {
		in := item(at+".portLevelSettings", i)
		c.port(in+".port.number", s.GetPort().GetNumber())
		c.that(s.GetLoadBalancer() != nil || s.GetConnectionPool() != nil || s.GetOutlierDetection() != nil ||
			s.GetTls() != nil, in, "expected at least one setting")
		c.part(in, s.GetLoadBalancer(), s.GetConnectionPool(), s.GetOutlierDetection())
		c.clientTLS(in+".tls", s.GetTls())
	}
	if t := p.Tunnel; t != nil {
		c.that(slices.Contains([]string{"", "CONNECT", "POST"}, t.GetProtocol()), at+".tunnel.protocol",
			"expected CONNECT or POST, got %q", t.GetProtocol())
		c.routedHost(at+".tunnel.targetHost", t.GetTargetHost())
		c.port(at+".tunnel.targetPort", t.GetTargetPort())
	}
}

// part checks the settings that a whole policy and the policy of one port have in common.
func (c *check) part(at string, lb *networking.LoadBalancerSettings, pool *networking.ConnectionPoolSettings,
	o *networking.OutlierDetection) {
	c.balancer(at+".loadBalancer", lb)
	c.pool(at+".connectionPool", pool)
	c.outlier(at+".outlierDetection", o)
}

// The largest hash tables that Envoy accepts.
const (
	largestRing   = 8 << 20
	largestMaglev = 5000011
)

func (c *check) balancer(at string, lb *networking.LoadBalancerSettings) {
	if h := lb.GetConsistentHash(); h != nil {
		c.consistentHash(at+".consistentHash", h)
	}
	c.duration(at+".warmupDurationSecs", lb.GetWarmupDurationSecs(), true)
	if w := lb.GetWarmup(); w != nil {
		c.duration(at+".warmup.duration", w.GetDuration(), true)
		if m := w.GetMinimumPercent(); m != nil {
			c.that(m.GetValue() >= 0 && m.GetValue() <= 100, at+".warmup.minimumPercent",
				"expected a percentage from 0 to 100, got %v", m.GetValue())
		}
		if a := w.GetAggression(); a != nil {
			c.that(a.GetValue() >= 1 && !math.IsInf(a.GetValue(), 0), at+".warmup.aggression",
				"expected a number of at least 1, got %v", a.GetValue())
		}
	}
	c.locality(at+".localityLbSetting", lb.GetLocalityLbSetting())
}

func (c *check) consistentHash(at string, h *networking.LoadBalancerSettings_ConsistentHashLB) {
	switch key := h.GetHashKey().(type) {
	case nil:
		c.that(false, at, "expected one of httpHeaderName, httpCookie, useSourceIp and httpQueryParameterName")
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		c.that(key.HttpHeaderName != "", at+".httpHeaderName", "expected the name of a header, got an empty one")
		c.line(at+".httpHeaderName", key.HttpHeaderName)
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		c.that(key.HttpQueryParameterName != "", at+".httpQueryParameterName",
			"expected the name of a parameter, got an empty one")
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		c.cookie(at+".httpCookie", key.HttpCookie)
	}
	//lint:ignore SA1019 older objects still use it
	if n := h.GetMinimumRingSize(); n != 0 {
		c.that(n <= largestRing, at+".minimumRingSize", "expected at most %d, got %d", largestRing, n)
		c.that(h.GetHashAlgorithm() == nil, at+".minimumRingSize",
			"expected only one of minimumRingSize, ringHash and maglev")
	}
	c.that(h.GetRingHash().GetMinimumRingSize() <= largestRing, at+".ringHash.minimumRingSize",
		"expected at most %d, got %d", largestRing, h.GetRingHash().GetMinimumRingSize())
	if m := h.GetMaglev(); m != nil {
		c.that(m.TableSize > 0 && m.TableSize < largestMaglev && isPrime(m.TableSize), at+".maglev.tableSize",
			"expected a prime number below %d, got %d", largestMaglev, m.TableSize)
	}
}

func (c *check) cookie(at string, cookie *networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie) {
	c.that(cookie.GetName() != "", at+".name", "expected the name of a cookie")
	c.line(at+".name", cookie.GetName())
	c.line(at+".path", cookie.GetPath())
	c.duration(at+".ttl", cookie.GetTtl(), true)
	for i, a := range cookie.GetAttributes() {
		in := item(at+".attributes", i)
		c.that(a.GetName() != "", in+".name", "expected the name of an attribute")
		c.line(in+".name", a.GetName())
		c.line(in+".value", a.GetValue())
	}
}

// isPrime reports whether n is prime, by trial division: the sizes of tables are at most a few millions.
func isPrime(n uint64) bool {
	for d := uint64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true // 1 counts too: Envoy accepts a table of one entry
}

func (c *check) locality(at string, l *networking.LocalityLoadBalancerSetting) {
	c.that(len(l.GetDistribute()) == 0 || len(l.GetFailover()) == 0 && len(l.GetFailoverPriority()) == 0, at,
		"expected only one of distribute and failover")
	for i, d := range l.GetDistribute() {
		sum, in := uint64(0), item(at+".distribute", i)
		c.that(d.GetFrom() != "", in+".from", "expected a locality")
		for _, to := range slices.Sorted(maps.Keys(d.GetTo())) {
			n := d.GetTo()[to]
			c.that(n > 0 && n <= 100, in+".to", "expected weights from 1 to 100, got %d for %q", n, to)
			sum += uint64(n)
		}
		c.that(sum == 100, in+".to", "expected weights that add up to 100, got %d", sum)
	}
	for i, f := range l.GetFailover() {
		c.that(f.GetFrom() != f.GetTo(), item(at+".failover", i), "expected two different regions, got %q twice",
			f.GetFrom())
	}
}

func (c *check) pool(at string, p *networking.ConnectionPoolSettings) {
	c.that(p == nil || p.Tcp != nil || p.Http != nil, at, "expected tcp or http")
	if t := p.GetTcp(); t != nil {
		c.that(t.MaxConnections >= 0, at+".tcp.maxConnections", "expected a number of at least 0, got %d",
			t.MaxConnections)
		c.positive(at+".tcp.connectTimeout", t.ConnectTimeout)
		c.positive(at+".tcp.maxConnectionDuration", t.MaxConnectionDuration)
		c.duration(at+".tcp.idleTimeout", t.IdleTimeout, true)
		if k := t.TcpKeepalive; k != nil {
			c.seconds(at+".tcp.tcpKeepalive.time", k.Time)
			c.seconds(at+".tcp.tcpKeepalive.interval", k.Interval)
		}
	}
	if h := p.GetHttp(); h != nil {
		for _, n := range []struct {
			field string
			value int32
		}{
			{".http.http1MaxPendingRequests", h.Http1MaxPendingRequests},
			{".http.http2MaxRequests", h.Http2MaxRequests},
			{".http.maxRequestsPerConnection", h.MaxRequestsPerConnection}, {".http.maxRetries", h.MaxRetries},
			{".http.maxConcurrentStreams", h.MaxConcurrentStreams},
		} {
			c.that(n.value >= 0, at+n.field, "expected a number of at least 0, got %d", n.value)
		}
		c.duration(at+".http.idleTimeout", h.IdleTimeout, true)
		if k := h.Http2KeepAlive; k != nil {
			c.positive(at+".http.http2KeepAlive.interval", k.Interval)
			c.that(k.Timeout != nil, at+".http.http2KeepAlive.timeout", "expected a duration")
			c.positive(at+".http.http2KeepAlive.timeout", k.Timeout)
		}
		c.that(h.H2UpgradePolicy != networking.ConnectionPoolSettings_HTTPSettings_UPGRADE || !h.UseClientProtocol,
			at+".http.useClientProtocol",
			"expected only one of useClientProtocol and h2UpgradePolicy UPGRADE")
	}
}

// seconds checks a duration that the kernel takes as a 32-bit number of seconds.
func (c *check) seconds(field string, d *durationpb.Duration) {
	c.duration(field, d, true)
	c.that(d.GetSeconds() <= math.MaxInt32, field, "expected at most %ds, got %ds", math.MaxInt32, d.GetSeconds())
}

func (c *check) retryBudget(at string, b *networking.TrafficPolicy_RetryBudget) {
	if p := b.GetPercent(); p != nil {
		c.that(p.GetValue() >= 0 && p.GetValue() <= 100, at+".percent", "expected a percentage from 0 to 100, got %v",
			p.GetValue())
	}
	c.duration(at+".budgetInterval", b.GetBudgetInterval(), true)
}

func (c *check) outlier(at string, o *networking.OutlierDetection) {
	c.positive(at+".interval", o.GetInterval())
	c.positive(at+".baseEjectionTime", o.GetBaseEjectionTime())
	c.within(at+".maxEjectionPercent", int64(o.GetMaxEjectionPercent()), 0, 100)
	c.within(at+".minHealthPercent", int64(o.GetMinHealthPercent()), 0, 100)
	c.that(o.GetSplitExternalLocalOriginErrors() || o.GetConsecutiveLocalOriginFailures().GetValue() == 0,
		at+".consecutiveLocalOriginFailures",
		"expected splitExternalLocalOriginErrors beside it")
}

func (c *check) clientTLS(at string, t *networking.ClientTLSSettings) {
	if t == nil {
		return
	}
	const longest = 255
	c.that(len(t.Sni) <= longest && !strings.Contains(t.Sni, "\x00"), at+".sni",
		"expected a server name of at most %d bytes, got %d", longest, len(t.Sni))
	files := t.ClientCertificate != "" || t.PrivateKey != "" || t.CaCertificates != ""
	switch t.Mode {
	case networking.ClientTLSSettings_MUTUAL:
		c.that(t.CredentialName != "" || t.ClientCertificate != "" && t.PrivateKey != "", at,
			"expected clientCertificate and privateKey, or credentialName, for mode MUTUAL")
		c.that(t.CredentialName == "" || t.ClientCertificate == "" && t.PrivateKey == "" && t.CaCertificates == "", at,
			"expected only one of files and credentialName")
	case networking.ClientTLSSettings_ISTIO_MUTUAL:
		c.that(!files && t.CredentialName == "", at, "expected no certificates for mode ISTIO_MUTUAL")
	}
}
