package kube

import (
	"encoding/json"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pilotd/pilotd/ingest"
)

// arriveEach decodes, object by object, a list that does not decode as a whole, and refuses only the objects that do
// not decode. It returns false if the answer is not a list in JSON. Lists in protobuf need no such care: the server
// encodes them from decoded objects.
//
// It also handles an object that breaks a watch: the watch ends, and the list that follows contains the object.
func (k kind) arriveEach(result rest.Result, c container) (runtime.Object, bool) {
	raw, err := result.Raw()
	if err != nil {
		return nil, false
	}
	var list struct {
		Kind     string            `json:"kind"`
		Metadata meta.ListMeta     `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(raw, &list) != nil || list.Metadata.ResourceVersion == "" {
		return nil, false
	}
	out := newArrivals(list.Metadata.ResourceVersion, list.Metadata.Continue, len(list.Items))
	for _, item := range list.Items {
		if a, ok := k.arriveAlone(list.Kind, item, c); ok {
			out.Items = append(out.Items, a)
		}
	}
	return out, true
}

// arriveAlone decodes one object of a list. It returns false if the object has no name under which it could be
// reported.
func (k kind) arriveAlone(listKind string, item json.RawMessage, c container) (*arrival, bool) {
	one, _ := json.Marshal(map[string]any{"kind": listKind, "metadata": map[string]any{},
		"items": []json.RawMessage{item}})
	found := k.list()
	err := json.Unmarshal(one, found)
	if err == nil {
		if all, bad := k.arriveAll(found, c); bad == nil && len(all.(*arrivals).Items) == 1 {
			return all.(*arrivals).Items[0], true
		}
		err = fmt.Errorf("it is no %s", k.APIName())
	}
	var named struct {
		Metadata struct {
			Name      any `json:"name"`
			Namespace any `json:"namespace"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(item, &named) // a missing name is noticed below
	name, _ := named.Metadata.Name.(string)
	namespace, _ := named.Metadata.Namespace.(string)
	if name == "" {
		return nil, false
	}
	a := &arrival{key: k.key(&meta.ObjectMeta{Namespace: namespace, Name: name})}
	a.bad = &ingest.Rejection{Source: k.source, Key: a.key, Reason: "does not decode: " + reasonOf(err)}
	return a, true
}
