package chart_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/e2e/parts"
)

// testSurroundings has what injection reads of the cluster besides its settings: ProxyConfig objects, what OpenShift
// writes into a namespace, and the versions of nodes.
func (i *installation) testSurroundings(t *testing.T) {
	nodes := i.client.CoreV1().Nodes()
	node := func(name, version string) {
		t.Helper()
		n, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err == nil {
			n.Status.NodeInfo.KubeletVersion = version
			_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	node("new", "v1.33.1-eks-0123abc")
	cluster := parts.NewBareCluster(t, i.api)
	cluster.Apply(`
apiVersion: v1
kind: Namespace
metadata:
  name: ranges
  labels: {istio-injection: enabled}
  annotations: {openshift.io/sa.scc.uid-range: 1000/10000, openshift.io/sa.scc.supplemental-groups: 2000/100}
---
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: all, namespace: istio-system}
spec: {concurrency: 3, environmentVariables: {OF: mesh, MESH: m}}
---
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: web, namespace: ranges}
spec: {selector: {matchLabels: {app: web}}, environmentVariables: {OF: web}, image: {imageType: distroless}}
`)
	is := func(what, node, want string) {
		t.Helper()
		parts.Eventually(t, what, func() error {
			pod, err := i.client.CoreV1().Pods("ranges").Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: "default",
					Containers: []corev1.Container{{Name: "app", Image: "a"}}}},
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			if got := described(pod); got != want {
				return fmt.Errorf("it is %s, want %s", got, want)
			}
			return nil
		})
	}
	const rest = " image docker.io/istio/proxyv2:1.31.1-distroless user 10999 group 2099 OF web MESH m"
	is("all nodes can run native sidecars", "", "native"+rest)
	node("old", "v1.32.9")
	is("one node cannot run native sidecars", "", "container"+rest)
	is("the pod's own node can", "new", "native"+rest)
	cluster.Delete(`
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: all, namespace: istio-system}
`)
	is("the mesh's ProxyConfig is gone", "", "container"+strings.TrimSuffix(rest, "m"))
	for _, name := range []string{"new", "old"} {
		if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// described says how a pod was injected.
func described(pod *corev1.Pod) string {
	for where, list := range map[string][]corev1.Container{"native": pod.Spec.InitContainers,
		"container": pod.Spec.Containers} {
		for _, c := range list {
			if c.Name != "istio-proxy" {
				continue
			}
			env := map[string]string{}
			for _, e := range c.Env {
				env[e.Name] = e.Value
			}
			return fmt.Sprintf("%s image %s user %d group %d OF %s MESH %s", where, c.Image, *c.SecurityContext.RunAsUser,
				*c.SecurityContext.RunAsGroup, env["OF"], env["MESH"])
		}
	}
	return "not injected"
}
