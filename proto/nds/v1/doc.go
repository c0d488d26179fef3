// Package ndsv1 is the message of Istio's name discovery service: the names that a node agent answers DNS queries from.
// `make proto` generates its code from nametable.proto. It imports nothing of this module.
//
// A message with a map of more than one entry is encoded by proto.MarshalOptions{Deterministic: true}: MarshalVT writes
// the entries in any order.
package ndsv1

//go:generate make -C ../../.. proto
