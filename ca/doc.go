// Package ca is the mesh's certificate authority: it signs certificates for workloads.
//
//	Material (PEM) ── New, checked ─► Authority ◄── Sign ── Service ◄── CreateCertificate, a call of a workload's agent
//	     ▲                            immutable              who calls, what kind of key, how long, when it is its turn
//	 a Secret, files, or SelfSigned
//
// An Authority is immutable: new material makes a new Authority, and the next call uses that one. The certificate names
// the identity that the caller has proven. Of the request only the public key is used.
//
// The roots of an Authority are all trusted roots; its own certificate chains up to at least one of them. A rotation
// first adds the next root, then changes the signing certificate, and removes the old root when every certificate that
// it signed has expired: see docs/security.md.
//
// Private keys never leave an Authority: String and GoString hide them, and it has no other encoding.
package ca
