// Package check says which rules of its receivers a message breaks, before it is sent: the constraints that the message
// type itself declares, and what Envoy checks beyond them when it loads the message. Everything here is a pure function
// of the message.
//
// A message that is packed inside another one is checked when it is packed (see Refusal): a fault in it is found again
// in the encoded bytes of whatever holds it, so that nobody unpacks anything.
//
//	Message  any message, by its own constraints, with what else is known of its type
//	Cluster, VirtualHost, FilterChain, Listener, Endpoint  the parts that are encoded for themselves
//	Packed   what was found in messages that are packed
package check
