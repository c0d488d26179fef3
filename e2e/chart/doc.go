// Package chart has the tests that install the chart into a real API server, and run pilotd there as the chart has it:
// with its arguments, its variables and the rights of its service account. There is no kubelet: the process that the
// Deployment describes is started by the test, and what is sent to the Service is forwarded to it.
package chart
