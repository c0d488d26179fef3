package startup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// transaction is how many objects are written at a time; etcd takes 128.
const transaction = 100

// record is one object as the API server keeps it.
type record struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// fill writes the objects of a mesh into etcd, and returns how many bytes of pods they
// have on average.
func fill(t testing.TB, etcd string, m *mesh.Mesh) (podBytes int) {
	t.Helper()
	var batch []record
	pods, all, n := 0, 0, 0
	for o := range m.Objects() {
		n++
		realistic(o, n)
		r := stored(t, o)
		if _, ok := o.(*core.Pod); ok {
			pods++
			all += len(r.Value)
		}
		if batch = append(batch, r); len(batch) == transaction {
			commit(t, etcd, batch)
			batch = batch[:0]
		}
	}
	if len(batch) > 0 {
		commit(t, etcd, batch)
	}
	return all / max(pods, 1)
}

// stored returns an object in the form and at the place in which kube-apiserver keeps it:
// Kubernetes's own in protobuf, those of CRDs in JSON.
func stored(t testing.TB, o meta.Object) record {
	t.Helper()
	key := "/registry/"
	switch o.(type) {
	case *core.Namespace:
		key += "namespaces"
	case *core.Node:
		key += "minions"
	case *core.Pod:
		key += "pods"
	case *core.Service:
		key += "services/specs"
	case *discovery.EndpointSlice:
		key += "endpointslices"
	default:
		gvk := o.(runtime.Object).GetObjectKind().GroupVersionKind()
		key += gvk.Group + "/" + map[string]string{"VirtualService": "virtualservices",
			"DestinationRule": "destinationrules"}[gvk.Kind]
	}
	if o.GetNamespace() != "" {
		key += "/" + o.GetNamespace()
	}
	return record{Key: []byte(key + "/" + o.GetName()), Value: encoded(t, o.(runtime.Object))}
}

func encoded(t testing.TB, o runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if gvk := o.GetObjectKind().GroupVersionKind(); !ok || !scheme.Scheme.Recognizes(gvk) {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var buf bytes.Buffer
	if err := info.Serializer.Encode(o, &buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// commit writes records through etcd's JSON gateway.
func commit(t testing.TB, etcd string, records []record) {
	t.Helper()
	type put struct {
		RequestPut record `json:"requestPut"`
	}
	puts := make([]put, len(records))
	for i, r := range records {
		puts[i].RequestPut = r
	}
	body, err := json.Marshal(map[string]any{"success": puts})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(etcd+"/v3/kv/txn", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK ||
		!bytes.Contains(text, []byte(`"succeeded":true`)) {
		t.Fatal(fmt.Errorf("etcd: %s: %s", resp.Status, text))
	}
}
