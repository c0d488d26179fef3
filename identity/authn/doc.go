// Package authn finds out who a client is, from what it shows: a certificate, or a token.
//
//	certificate ── chain, life, SPIFFE ID, trust domain ────────────────────────────┐
//	token ─┬─ its issuer is known here ── signature, audience, life (OIDC) ─────────┼─► identity.Peer, or a Refusal
//	       └─ else ── cache ── Reviewer: the API server that made it (TokenReview) ─┘
//
// A client that shows several things is refused if the first of them is not good: what is shown counts. What nobody
// could check is refused as Unavailable, so that the client comes again; everything else as Unauthenticated. Refusals
// name their reason, and are counted by it.
//
// Authenticate may block while others are asked, for no longer than askTime, and for its caller alone: each token is
// asked about once at a time, a bounded number of different ones at once, and the rest wait. What was said of a token
// is kept for a minute (a refusal for ten seconds), never beyond the token's life, by a hash: a token that is revoked
// is good for a minute at most. Nothing here logs or keeps a token.
package authn
