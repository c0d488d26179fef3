// Package capture writes the kernel rules that send a pod's traffic through its proxy: outbound connections of the
// application to one port of the proxy, inbound connections to another, and DNS queries to the agent. The proxy's own
// traffic is not captured.
//
//	Config, as injection writes it ─► Rules, for IPv4 and IPv6 ─┬─► Text, for people
//	                                                            └─► Apply, one transaction with the kernel (nf_tables)
//
// Making the rules does no I/O. Apply replaces the rules of an earlier Apply in one transaction, and Remove deletes
// them; neither touches the rules of other programs. The package talks to the kernel itself and needs no nft or
// iptables program.
package capture
