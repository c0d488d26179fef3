package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pilotd/pilotd/ca"
	"github.com/pilotd/pilotd/identity"
)

// Account is a service account by its names in Kubernetes.
type Account struct{ Namespace, Name string }

// String returns the account in the form namespace/name.
func (a Account) String() string { return a.Namespace + "/" + a.Name }

// NodeAgents decides for which identities a node's agent may ask for certificates: only for service accounts that have
// a pod on the node that the agent's own pod runs on. Safe for concurrent use.
type NodeAgents struct {
	// Immutable after NewNodeAgents.
	trusted []Account
	log     *slog.Logger
	pods    cache.SharedIndexInformer // of all nodes, reduced to the fields that are read here
}

// ErrNoAgent reports that the caller is not an agent of a node.
var ErrNoAgent = errors.New("the caller is no agent of nodes")

// byPlace is the index of pods by node and service account.
const byPlace = "place"

func placeOf(node string, a Account) string { return node + "/" + a.String() }

// NewNodeAgents returns NodeAgents for agents with these service accounts. It knows no pods before Run.
func NewNodeAgents(a *API, trusted []Account, log *slog.Logger) *NodeAgents {
	lw := cache.NewListWatchFromClient(a.core.RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
	n := &NodeAgents{trusted: trusted, log: log, pods: cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
		cache.Indexers{byPlace: func(object any) ([]string, error) {
			p, ok := object.(*corev1.Pod)
			if !ok || !runs(p) {
				return nil, nil
			}
			return []string{placeOf(p.Spec.NodeName, accountOf(p))}, nil
		}})}
	// Neither call fails before the informer runs.
	_ = n.pods.SetTransform(func(object any) (any, error) {
		if p, ok := object.(*corev1.Pod); ok {
			object = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion},
				Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName, ServiceAccountName: p.Spec.ServiceAccountName},
				Status:     corev1.PodStatus{Phase: p.Status.Phase}}
		}
		return object, nil
	})
	_ = n.pods.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		log.Warn("pods cannot be watched, so agents of nodes get no certificates for those that are new; it is tried again",
			"error", err)
	})
	return n
}

func accountOf(p *corev1.Pod) Account { return Account{p.Namespace, p.Spec.ServiceAccountName} }

// runs reports whether a pod is on a node and has not finished.
func runs(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// Run follows the pods until ctx ends.
func (n *NodeAgents) Run(ctx context.Context) {
	n.pods.RunWithContext(klog.NewContext(ctx, logr.FromSlogHandler(n.log.Handler()))) // the log of client-go
}

// Trusts reports whether an identity is that of agents of nodes.
func (n *NodeAgents) Trusts(who identity.Identity) bool {
	return slices.Contains(n.trusted, Account{who.Namespace, who.ServiceAccount})
}

// MayActFor returns nil if an agent may ask for a certificate for who. The error is for logs; it wraps ca.ErrLater if
// the answer may change soon. It never blocks.
func (n *NodeAgents) MayActFor(agent identity.Peer, who identity.Identity) error {
	own := Account{agent.Identity.Namespace, agent.Identity.ServiceAccount}
	switch {
	case !n.Trusts(agent.Identity):
		return ErrNoAgent
	case agent.Pod.Name == "" || agent.Pod.UID == "":
		return errors.New("the agent has not proven which pod it is: want a token that is bound to its pod")
	case !n.pods.HasSynced():
		return ca.ErrLater
	}
	object, ok, err := n.pods.GetStore().GetByKey(own.Namespace + "/" + agent.Pod.Name)
	if err != nil || !ok {
		return fmt.Errorf("the agent's pod %s/%s is not known", own.Namespace, agent.Pod.Name)
	}
	pod := object.(*corev1.Pod)
	if string(pod.UID) != agent.Pod.UID || accountOf(pod) != own || !runs(pod) {
		return fmt.Errorf("the agent's pod %s/%s is another one, or runs no more", own.Namespace, agent.Pod.Name)
	}
	wanted := Account{who.Namespace, who.ServiceAccount}
	there, err := n.pods.GetIndexer().IndexKeys(byPlace, placeOf(pod.Spec.NodeName, wanted))
	if err != nil || len(there) == 0 {
		return fmt.Errorf("no pod of %s runs on node %s", wanted, pod.Spec.NodeName)
	}
	return nil
}
