// Package cluster is what pilotd asks of a Kubernetes API server and writes to it, except reading configuration
// (package ingest/kube).
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
// Everything here may block, and runs on goroutines of its own. What fails is retried without end; an API server that
// is away delays this work and breaks nothing. Package cluster/leader elects the leader.
package cluster
