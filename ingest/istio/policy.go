package istio

import (
	"cmp"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Policy converts a DestinationRule.
func Policy(in *networking.DestinationRule) value.DestinationPolicy {
	return value.DestinationPolicy{
		Host: in.GetHost(), Workload: in.GetWorkloadSelector().GetMatchLabels(), ExportTo: list(in.GetExportTo()),
		Policy: optional(in.GetTrafficPolicy(), portPolicies),
		Subsets: each(in.GetSubsets(), func(s *networking.Subset) *value.Subset {
			return &value.Subset{Name: s.GetName(), Labels: s.GetLabels(),
				Policy: optional(s.GetTrafficPolicy(), portPolicies)}
		}),
	}
}

func portPolicies(in *networking.TrafficPolicy) value.PortPolicies {
	out := value.PortPolicies{TrafficPolicy: value.TrafficPolicy{
		Pool: optional(in.GetConnectionPool(), Pool), Outlier: optional(in.GetOutlierDetection(), Outlier),
		Balancer: optional(in.GetLoadBalancer(), balancer), TLS: optional(in.GetTls(), ClientTLS),
		RetryBudget: optional(in.GetRetryBudget(), retryBudget),
	}}
	if p := in.GetProxyProtocol(); p != nil {
		out.ProxyProtocol = value.ProxyProtocolV1
		if p.GetVersion() == networking.TrafficPolicy_ProxyProtocol_V2 {
			out.ProxyProtocol = value.ProxyProtocolV2
		}
	}
	out.Ports = each(in.GetPortLevelSettings(), func(s *networking.TrafficPolicy_PortTrafficPolicy) value.PortPolicy {
		return value.PortPolicy{Port: int(s.GetPort().GetNumber()), TrafficPolicy: value.TrafficPolicy{
			Pool: optional(s.GetConnectionPool(), Pool), Outlier: optional(s.GetOutlierDetection(), Outlier),
			Balancer: optional(s.GetLoadBalancer(), balancer), TLS: optional(s.GetTls(), ClientTLS),
		}}
	})
	return out
}

// Pool converts the connection limits of a policy, of a Sidecar or of the mesh.
func Pool(in *networking.ConnectionPoolSettings) value.ConnectionPool {
	tcp, http := in.GetTcp(), in.GetHttp()
	out := value.ConnectionPool{
		ConnectTimeout: duration(tcp.GetConnectTimeout()), MaxDuration: duration(tcp.GetMaxConnectionDuration()),
		TCPIdle: duration(tcp.GetIdleTimeout()), HTTPIdle: duration(http.GetIdleTimeout()),
		Keepalive:      keepalive(tcp.GetTcpKeepalive()),
		MaxConnections: limit(tcp.GetMaxConnections()), MaxPendingRequests: limit(http.GetHttp1MaxPendingRequests()),
		MaxRequests: limit(http.GetHttp2MaxRequests()), MaxRetries: limit(http.GetMaxRetries()),
		MaxRequestsPerConnection: limit(http.GetMaxRequestsPerConnection()),
		MaxConcurrentStreams:     limit(http.GetMaxConcurrentStreams()),
		UseClientProtocol:        http.GetUseClientProtocol(),
	}
	if p := http.GetHttp2KeepAlive(); p != nil {
		out.Pinged, out.PingEach, out.PingReply = true, duration(p.GetInterval()), duration(p.GetTimeout())
	}
	switch http.GetH2UpgradePolicy() {
	case networking.ConnectionPoolSettings_HTTPSettings_UPGRADE:
		out.Upgrade = value.Yes
	case networking.ConnectionPoolSettings_HTTPSettings_DO_NOT_UPGRADE:
		out.Upgrade = value.No
	}
	return out
}

// limit converts a limit; 0 and less mean no limit.
func limit(n int32) uint32 { return uint32(max(0, n)) }

func keepalive(in *networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive) value.Keepalive {
	if in == nil {
		return value.Keepalive{}
	}
	return value.Keepalive{Set: true, Probes: in.GetProbes(), Time: duration(in.GetTime()),
		Interval: duration(in.GetInterval())}
}

// Outlier converts the outlier detection of a policy or of the mesh.
func Outlier(in *networking.OutlierDetection) value.OutlierDetection {
	return value.OutlierDetection{
		Interval: duration(in.GetInterval()), BaseEjection: duration(in.GetBaseEjectionTime()),
		Errors: number(in.GetConsecutive_5XxErrors()), GatewayErrors: number(in.GetConsecutiveGatewayErrors()),
		LocalFailures: number(in.GetConsecutiveLocalOriginFailures()), SplitLocal: in.GetSplitExternalLocalOriginErrors(),
		MaxEjectionPercent: limit(in.GetMaxEjectionPercent()), MinHealthPercent: limit(in.GetMinHealthPercent()),
	}
}

func number(n *wrapperspb.UInt32Value) value.Limit {
	return value.Limit{N: n.GetValue(), Set: n != nil}
}

func balancer(in *networking.LoadBalancerSettings) value.LoadBalancer {
	out := value.LoadBalancer{Hash: optional(in.GetConsistentHash(), consistentHash), Warmup: warmup(in),
		Locality: optional(in.GetLocalityLbSetting(), Locality)}
	switch in.GetSimple() {
	case networking.LoadBalancerSettings_RANDOM:
		out.Algorithm = value.Random
	case networking.LoadBalancerSettings_ROUND_ROBIN:
		out.Algorithm = value.RoundRobin
	case networking.LoadBalancerSettings_PASSTHROUGH:
		out.Algorithm = value.PassThrough
	}
	return out
}

// warmup returns the newer of two settings if it is set, else the older one.
func warmup(in *networking.LoadBalancerSettings) *value.Warmup {
	w := in.GetWarmup()
	if w == nil {
		if window := duration(in.GetWarmupDurationSecs()); window.Set {
			return &value.Warmup{Window: window}
		}
		return nil
	}
	out := &value.Warmup{Window: duration(w.GetDuration()), Gradual: true, Aggression: 1, MinPercent: 10}
	if w.GetAggression() != nil {
		out.Aggression = w.GetAggression().GetValue()
	}
	if w.GetMinimumPercent() != nil {
		out.MinPercent = w.GetMinimumPercent().GetValue()
	}
	return out
}

// ringSize is the default size of a hash ring.
const ringSize = 1024

func consistentHash(in *networking.LoadBalancerSettings_ConsistentHashLB) value.ConsistentHash {
	var out value.ConsistentHash
	switch h := in.GetHashKey().(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		out.By, out.Name = value.HashHeader, h.HttpHeaderName
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		c := h.HttpCookie
		out.By, out.Name, out.TTL, out.Path = value.HashCookie, c.GetName(), duration(c.GetTtl()), c.GetPath()
		for _, a := range c.GetAttributes() {
			out.Attributes = append(out.Attributes, value.Header{Name: a.GetName(), Value: a.GetValue()})
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp:
		out.By, out.Address = value.HashAddress, h.UseSourceIp
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		out.By, out.Name = value.HashParameter, h.HttpQueryParameterName
	}
	switch {
	case in.GetMaglev() != nil:
		out.Maglev, out.Size = true, in.GetMaglev().GetTableSize()
	case in.GetRingHash() != nil:
		out.Size = in.GetRingHash().GetMinimumRingSize()
	default:
		//lint:ignore SA1019 users still set it
		out.Size = cmp.Or(in.GetMinimumRingSize(), ringSize)
	}
	return out
}

// Locality converts locality load balancing of a policy or of the mesh.
func Locality(in *networking.LocalityLoadBalancerSetting) value.LocalityBalancing {
	return value.LocalityBalancing{
		Enabled: boolean(in.GetEnabled()), Priority: list(in.GetFailoverPriority()),
		Distribute: each(in.GetDistribute(),
			func(d *networking.LocalityLoadBalancerSetting_Distribute) *value.Distribution {
				return &value.Distribution{From: d.GetFrom(), To: d.GetTo()}
			}),
		Failover: each(in.GetFailover(), func(f *networking.LocalityLoadBalancerSetting_Failover) value.Failover {
			return value.Failover{From: f.GetFrom(), To: f.GetTo()}
		}),
	}
}

// ClientTLS converts the client TLS settings of a policy or of the mesh.
func ClientTLS(in *networking.ClientTLSSettings) value.ClientTLS {
	out := value.ClientTLS{
		SNI: in.GetSni(), Names: list(in.GetSubjectAltNames()), Credential: in.GetCredentialName(),
		Certificate: in.GetClientCertificate(), Key: in.GetPrivateKey(), Root: in.GetCaCertificates(),
		CRL: in.GetCaCrl(), SkipVerify: in.GetInsecureSkipVerify().GetValue(),
	}
	switch in.GetMode() {
	case networking.ClientTLSSettings_SIMPLE:
		out.Mode = value.SimpleTLS
	case networking.ClientTLSSettings_MUTUAL:
		out.Mode = value.MutualTLS
	case networking.ClientTLSSettings_ISTIO_MUTUAL:
		out.Mode = value.MeshTLS
	}
	return out
}

func retryBudget(in *networking.TrafficPolicy_RetryBudget) value.RetryBudget {
	out := value.RetryBudget{Percent: 20, Min: cmp.Or(in.GetMinRetryConcurrency(), 3),
		Interval: duration(in.GetBudgetInterval())}
	if in.GetPercent() != nil {
		out.Percent = in.GetPercent().GetValue()
	}
	return out
}
