// Package ca is the mesh's certificate authority: it signs the keys of workloads.
//
//	Material (PEM) ── New, checked ─► Authority ◄── Sign ── Service ◄── CreateCertificate, a call of a workload's agent
//	     ▲                            immutable              who calls, what kind of key, how long, when it is its turn
//	 a Secret, files, or SelfSigned
//
// An Authority is a value: new material makes a new one, and whoever signs next takes that. What it signs has the name
// of who asks, as that was proven; of a request only its key is taken.
//
// Roots of an Authority are all that are trusted, of which its own certificate leads to at least one. A rotation adds
// the next root to them first, then changes the signer, and takes the old root away when all that it has signed is
// gone: see docs/security.md.
//
// Keys leave an Authority nowhere: its String and GoString have none, and it has no other form.
package ca
