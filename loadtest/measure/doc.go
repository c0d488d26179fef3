// Package measure turns what a load test observes into numbers: latencies into a few percentiles, and a server's
// process into CPU time and memory.
package measure
