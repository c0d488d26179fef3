package parts

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Token returns a token of a service account for the audience that control planes accept, as the kubelet projects it
// into pods, but not bound to a pod.
func (c *Cluster) Token(namespace, account string) string {
	c.t.Helper()
	return c.TokenFor("istio-ca", namespace, account)
}

// TokenFor returns a token of a service account for an audience.
func (c *Cluster) TokenFor(audience, namespace, account string) string {
	c.t.Helper()
	return c.token(namespace, account, map[string]any{"audiences": []any{audience}})
}

// PodToken returns a token of a service account that is bound to a pod.
func (c *Cluster) PodToken(namespace, account, pod string) string {
	c.t.Helper()
	p, err := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace).
		Get(context.Background(), pod, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.token(namespace, account, map[string]any{"audiences": []any{"istio-ca"},
		"boundObjectRef": map[string]any{"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": string(p.GetUID())}})
}

func (c *Cluster) token(namespace, account string, spec map[string]any) string {
	c.t.Helper()
	spec["expirationSeconds"] = int64(3600)
	made, err := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).
		Namespace(namespace).Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": account},
		"spec": spec,
	}}, metav1.CreateOptions{}, "token")
	if err != nil {
		c.t.Fatalf("token of %s/%s: %v", namespace, account, err)
	}
	token, _, err := unstructured.NestedString(made.Object, "status", "token")
	if err != nil || token == "" {
		c.t.Fatalf("token of %s/%s: %v", namespace, account, err)
	}
	return token
}

// Roots waits for the root certificates that pilotd publishes in a namespace for pods to mount.
func (c *Cluster) Roots(namespace string) string {
	c.t.Helper()
	maps := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	var roots string
	Eventually(c.t, "the roots of the mesh are in "+namespace, func() error {
		m, err := maps.Get(context.Background(), "istio-ca-root-cert", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if roots, _, _ = unstructured.NestedString(m.Object, "data", "root-cert.pem"); roots == "" {
			return errors.New("no root-cert.pem")
		}
		return nil
	})
	return roots
}
