// Package cluster is what pilotd asks of a Kubernetes API server, and writes to it, besides reading configuration
// (which is package ingest/kube).
//
//	tokens of callers ────────► TokenReview                        API.Review
//	credentials of gateways ──► Secrets, ConfigMaps by name        Credentials.Run
//	who may list Secrets? ────► SubjectAccessReview                API.MayListSecrets
//	agents of nodes ──────────► Pods, by node and account           NodeAgents.Run
//	istio-ca-secret, cacerts ─► the authority in force, everywhere  Authority.Run
//	                            made and renewed                    Authority.Run, Authority.Renew (the leader)
//	istio-ca-root-cert ◄─────── in every namespace                  API.PublishRoots (the leader)
//	webhooks' caBundle ◄─────── those of a revision                 API.KeepWebhooks (the leader)
//	Events, conditions ◄─────── what pilotd cannot use of objects   API.TellFacts (the leader)
//
// Everything here may block, and is for goroutines of its own. What fails is tried again, for as long as it takes; a
// server that is away delays and breaks nothing. Package cluster/leader says who the leader is.
package cluster
