package parts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// fieldManager is the field manager of what tests apply.
const fieldManager = "pilotd-e2e"

// Cluster stores objects in a Kubernetes API server. No kubelet and no controller runs, so the test writes what these
// would write.
type Cluster struct {
	// Immutable after NewCluster.
	t       testing.TB
	api     *APIServer
	client  dynamic.Interface
	mapping *restmapper.DeferredDiscoveryRESTMapper
}

// NewCluster returns the API server with Istio's CRDs installed.
func NewCluster(t testing.TB, api *APIServer) *Cluster {
	t.Helper()
	c := NewBareCluster(t, api)
	c.InstallCRDs()
	return c
}

// NewBareCluster returns the API server without Istio's CRDs.
func NewBareCluster(t testing.TB, api *APIServer) *Cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", api.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{
		t: t, api: api, client: client,
		mapping: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)),
	}
}

// InstallCRDs installs Istio's CRDs and waits until the API server serves them.
func (c *Cluster) InstallCRDs() {
	c.t.Helper()
	c.Apply(istioCRDs(c.t))
	Eventually(c.t, "the CRDs are served", func() error {
		c.mapping.Reset()
		for kind, version := range map[string]string{"VirtualService": "networking.istio.io/v1",
			"AuthorizationPolicy": "security.istio.io/v1", "Telemetry": "telemetry.istio.io/v1"} {
			if _, err := c.resource(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": "default"},
			}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// istioCRDs returns the CRDs of the istio.io/api version that pilotd is built with.
func istioCRDs(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/api").Output()
	if err != nil {
		t.Fatalf("the module istio.io/api: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "kubernetes",
		"customresourcedefinitions.gen.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// StopServer stops the API server; pilotd keeps what it knows.
func (c *Cluster) StopServer() { c.api.Kill() }

// Sources returns sources that make pilotd read the cluster.
func (c *Cluster) Sources() Sources { return Sources{Kubeconfig: c.api.Kubeconfig} }

// Apply applies each object server-side, then its status if it has one.
func (c *Cluster) Apply(text string) {
	c.t.Helper()
	objects, err := decode(text)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range objects {
		if err := c.apply(o); err != nil {
			c.t.Fatalf("apply %s %s/%s: %v", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
	}
}

// TryApply works like Apply for objects that the API server may refuse. It returns the first refusal.
func (c *Cluster) TryApply(text string) error {
	objects, err := decode(text)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.apply(o); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) apply(o *unstructured.Unstructured) error {
	r, err := c.resource(o)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	status, has := o.Object["status"]
	delete(o.Object, "status")
	if _, err := r.Apply(context.Background(), o.GetName(), o, options); err != nil || !has {
		return err
	}
	_, err = r.ApplyStatus(context.Background(), o.GetName(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "status": status,
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()},
	}}, options)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}

// Delete deletes the objects that the text names, without a grace period.
func (c *Cluster) Delete(text string) {
	c.t.Helper()
	objects, err := decode(text)
	if err != nil {
		c.t.Fatal(err)
	}
	var now int64
	for _, o := range objects {
		r, err := c.resource(o)
		if err == nil {
			err = r.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
		if err != nil {
			c.t.Fatalf("delete %s %s/%s: %v", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
	}
}

func (c *Cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	m, err := c.mapping.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	r := c.client.Resource(m.Resource)
	if m.Scope.Name() == "namespace" {
		return r.Namespace(o.GetNamespace()), nil
	}
	return r, nil
}
