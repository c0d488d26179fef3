package check

import (
	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

func Cluster(c *clusterpb.Cluster) []Fault                                        { return Message(c) }
func VirtualHost(v *routepb.VirtualHost) []Fault                                  { return Message(v) }
func FilterChain(c *listenerpb.FilterChain) []Fault                               { return Message(c) }
func Listener(c *listenerpb.Listener) []Fault                                     { return Message(c) }
func Overlap(before []*listenerpb.FilterChain, c *listenerpb.FilterChain) []Fault { return nil }
