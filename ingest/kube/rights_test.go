package kube

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pilotd/pilotd/e2e/parts"
	"github.com/pilotd/pilotd/ingest/sinktest"
	"github.com/pilotd/pilotd/snapshot/value"
)

const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: app}
rules:
- {apiGroups: [""], resources: [pods, services], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [networking.istio.io], resources: ["*"], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: app}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: narrow}
rules:
- {apiGroups: [""], resources: [pods, services, configmaps], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [networking.istio.io], resources: [virtualservices], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: narrow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: narrow}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: narrow}]
`

const wider = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: narrow}
rules:
- {apiGroups: [""], resources: [pods, services, configmaps, nodes, namespaces], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [networking.istio.io], resources: [virtualservices, gateways], verbs: [get, list, watch]}
`

// A real API server with RBAC: the rights in one namespace are enough for --appNamespace, and where rights to the kinds
// that pilotd can do without are missing, it goes on without them, says so, and takes them in once they are given.
func TestRealServerGivesOnlySomeRights(t *testing.T) {
	api := parts.StartAPIServer(t)
	cluster := parts.NewBareCluster(t, api)
	cluster.InstallCRDs()
	cluster.Apply(realObjects + "---\n" + rights + "---\n" + strings.ReplaceAll(realVS("x", "x.com"), "namespace: default",
		"namespace: app"))
	as := func(user string) *rest.Config {
		cfg, err := RESTConfig(Options{Kubeconfig: api.Kubeconfig})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Impersonate, cfg.WrapTransport = rest.ImpersonationConfig{UserName: user}, nil
		return cfg
	}
	x := value.ObjectKey{Kind: value.KindVirtualService, Namespace: "app", Name: "x"}
	check := func(told *sinktest.Told, lost ...value.Kind) {
		t.Helper()
		if !has(service("web"))(told) || !has(x)(told) {
			t.Errorf("synced without the objects of the namespace: %v", told.Objects)
		}
		for _, k := range lost {
			if reason := ofKind(told, k); !strings.Contains(reason, "forbidden") {
				t.Errorf("told of kind %s: %q", k, reason)
			}
		}
	}
	r := start(t, Options{Config: as("tenant"), Namespace: "app", Grace: time.Hour})
	r.Until(t, "sync with rights in one namespace", synced)
	check(r.Now(), value.KindNode, value.KindNamespace, value.KindMeshConfig)

	r = start(t, Options{Config: as("narrow"), Grace: 2 * time.Second})
	r.Until(t, "sync without nodes, namespaces and gateways", synced)
	check(r.Now(), value.KindNode, value.KindNamespace, value.KindGateway)
	cluster.Apply(wider)
	r.Until(t, "the node and the namespace", func(told *sinktest.Told) bool {
		return has(value.ObjectKey{Kind: value.KindNode, Name: "node-a"})(told) &&
			has(value.ObjectKey{Kind: value.KindNamespace, Name: "app"})(told)
	})
	r.Until(t, "the end of the reports", func(told *sinktest.Told) bool {
		return ofKind(told, value.KindNode)+ofKind(told, value.KindNamespace)+ofKind(told, value.KindGateway) == ""
	})
}
