// Package measure turns what a load test sees into figures: latencies into a few ranks, and a server's process into CPU
// time and memory.
package measure
