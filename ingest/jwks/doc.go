// Package jwks fetches the keys that issuers of tokens publish, for the objects that name a URI in place of keys.
//
//	RequestAuthentication ─► ingest.Store ──WantedKeys──► Fetcher ──► http(s)://issuer/keys
//	                                ▲                        │
//	                                └────────PutKeys─────────┘
//
// A Fetcher reads each place once, however many objects name it: at once when it is named first, then in intervals, and
// after a failure with growing pauses. What was good last stays. Nothing waits for it but the first answers to proxies,
// and these not for long: see Options.FirstWait.
//
// Who may write an object decides what a Fetcher asks, so that every answer is bounded in time, size and redirects,
// addresses of the machine's own network are not asked, and nothing of an answer is shown but the keys in it.
package jwks
