// Package capture writes the rules that send a pod's traffic through its proxy: what the application opens goes to one
// port of the proxy, what arrives to another, and DNS queries to the agent. The proxy's own traffic passes.
//
//	Config, as injection writes it ─► Rules, for IPv4 and IPv6 ─┬─► Text, for people
//	                                                            └─► Apply, one transaction with the kernel (nf_tables)
//
// Rules are pure. Apply replaces what an earlier Apply wrote, all or nothing, and Remove takes it away; neither touches
// rules of others. No program is needed for that.
package capture
