// Package jwks fetches the public keys of token issuers, for objects that name a URI in place of keys.
//
//	RequestAuthentication ─► ingest.Store ──WantedKeys──► Fetcher ──► http(s)://issuer/keys
//	                                ▲                        │
//	                                └────────PutKeys─────────┘
//
// A Fetcher fetches each URI once, however many objects name it, or issuers' OpenID configurations: immediately when it
// is first named, then periodically, and after a failure with growing pauses. The last keys that were fetched stay in
// use. Only the first answers to proxies wait for it, for a bounded time: see Options.FirstWait. Namespaces take turns,
// so that one whose objects name many slow places delays no other one.
//
// Whoever may write an object chooses what a Fetcher requests. So every request is bounded in time, size and number of
// redirects, addresses of the machine's own network are refused, and only the keys of an answer are used or shown.
package jwks
