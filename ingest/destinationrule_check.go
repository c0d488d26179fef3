package ingest

import (
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
)

func checkDestinationRule(o *clientnet.DestinationRule) *problem {
	c, spec := &check{}, &o.Spec
	c.routedHost("spec.host", spec.Host)
	c.policy("spec.trafficPolicy", spec.TrafficPolicy)
	for i, s := range spec.Subsets {
		at := item("spec.subsets", i)
		c.that(isDomain(s.GetName()) || isLabel(s.GetName()), at+".name", "expected a name, got %q", s.GetName())
		first := slices.IndexFunc(spec.Subsets, func(o *networking.Subset) bool { return o.GetName() == s.GetName() })
		c.that(first == i, at+".name", "%q is defined twice", s.GetName())
		c.labels(at+".labels", s.GetLabels())
		c.policy(at+".trafficPolicy", s.GetTrafficPolicy())
	}
	c.labels("spec.workloadSelector.matchLabels", spec.GetWorkloadSelector().GetMatchLabels())
	c.exportTo(spec.ExportTo)
	return c.first
}

func (c *check) policy(at string, p *networking.TrafficPolicy) {
	if p == nil {
		return
	}
	c.part(at, p.LoadBalancer, p.ConnectionPool, p.OutlierDetection)
	c.clientTLS(at+".tls", p.Tls)
	for i, s := range p.PortLevelSettings {
		in := item(at+".portLevelSettings", i)
		c.port(in+".port.number", s.GetPort().GetNumber())
		c.part(in, s.GetLoadBalancer(), s.GetConnectionPool(), s.GetOutlierDetection())
		c.clientTLS(in+".tls", s.GetTls())
	}
	if t := p.Tunnel; t != nil {
		c.that(slices.Contains([]string{"", "CONNECT", "POST"}, t.GetProtocol()), at+".tunnel.protocol", "expected CONNECT or POST, got %q", t.GetProtocol())
		c.routedHost(at+".tunnel.targetHost", t.GetTargetHost())
		c.port(at+".tunnel.targetPort", t.GetTargetPort())
	}
}

// part checks what a policy and the settings of one port have in common.
func (c *check) part(at string, lb *networking.LoadBalancerSettings, pool *networking.ConnectionPoolSettings, o *networking.OutlierDetection) {
	c.balancer(at+".loadBalancer", lb)
	c.pool(at+".connectionPool", pool)
	c.outlier(at+".outlierDetection", o)
}

func (c *check) balancer(at string, lb *networking.LoadBalancerSettings) {
	if h := lb.GetConsistentHash(); h != nil {
		in := at + ".consistentHash"
		c.that(h.GetHashKey() != nil, in, "expected one of httpHeaderName, httpCookie, useSourceIp and httpQueryParameterName")
		if cookie := h.GetHttpCookie(); cookie != nil {
			c.that(cookie.GetName() != "", in+".httpCookie.name", "expected the name of a cookie")
		}
		c.that(h.GetMaglev().GetTableSize() <= 5000011, in+".maglev.tableSize", "expected at most 5000011, got %d", h.GetMaglev().GetTableSize())
	}
	c.duration(at+".warmupDurationSecs", lb.GetWarmupDurationSecs(), true)
	c.duration(at+".warmup.duration", lb.GetWarmup().GetDuration(), true)
	c.locality(at+".localityLbSetting", lb.GetLocalityLbSetting())
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
		c.that(f.GetFrom() != f.GetTo(), item(at+".failover", i), "expected two different regions, got %q twice", f.GetFrom())
	}
}

func (c *check) pool(at string, p *networking.ConnectionPoolSettings) {
	if t := p.GetTcp(); t != nil {
		c.that(t.MaxConnections >= 0, at+".tcp.maxConnections", "expected a number of at least 0, got %d", t.MaxConnections)
		c.positive(at+".tcp.connectTimeout", t.ConnectTimeout)
		c.positive(at+".tcp.maxConnectionDuration", t.MaxConnectionDuration)
		c.duration(at+".tcp.idleTimeout", t.IdleTimeout, true)
	}
	if h := p.GetHttp(); h != nil {
		for _, n := range []struct {
			field string
			value int32
		}{
			{".http.http1MaxPendingRequests", h.Http1MaxPendingRequests}, {".http.http2MaxRequests", h.Http2MaxRequests},
			{".http.maxRequestsPerConnection", h.MaxRequestsPerConnection}, {".http.maxRetries", h.MaxRetries},
			{".http.maxConcurrentStreams", h.MaxConcurrentStreams},
		} {
			c.that(n.value >= 0, at+n.field, "expected a number of at least 0, got %d", n.value)
		}
		c.duration(at+".http.idleTimeout", h.IdleTimeout, true)
		c.that(h.H2UpgradePolicy != networking.ConnectionPoolSettings_HTTPSettings_UPGRADE || !h.UseClientProtocol, at+".http.useClientProtocol",
			"expected only one of useClientProtocol and h2UpgradePolicy UPGRADE")
	}
}

func (c *check) outlier(at string, o *networking.OutlierDetection) {
	c.positive(at+".interval", o.GetInterval())
	c.positive(at+".baseEjectionTime", o.GetBaseEjectionTime())
	c.within(at+".maxEjectionPercent", int64(o.GetMaxEjectionPercent()), 0, 100)
	c.within(at+".minHealthPercent", int64(o.GetMinHealthPercent()), 0, 100)
	c.that(o.GetSplitExternalLocalOriginErrors() || o.GetConsecutiveLocalOriginFailures().GetValue() == 0, at+".consecutiveLocalOriginFailures",
		"expected splitExternalLocalOriginErrors beside it")
}

func (c *check) clientTLS(at string, t *networking.ClientTLSSettings) {
	if t == nil {
		return
	}
	files := t.ClientCertificate != "" || t.PrivateKey != "" || t.CaCertificates != ""
	switch t.Mode {
	case networking.ClientTLSSettings_MUTUAL:
		c.that(t.CredentialName != "" || t.ClientCertificate != "" && t.PrivateKey != "", at, "expected clientCertificate and privateKey, or credentialName, for mode MUTUAL")
		c.that(t.CredentialName == "" || t.ClientCertificate == "" && t.PrivateKey == "" && t.CaCertificates == "", at, "expected only one of files and credentialName")
	case networking.ClientTLSSettings_ISTIO_MUTUAL:
		c.that(!files && t.CredentialName == "", at, "expected no certificates for mode ISTIO_MUTUAL")
	}
}
