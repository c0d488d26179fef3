package kube

import (
	"encoding/json"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pilotd/pilotd/ingest"
)

// arriveEach reads a list that does not decode, object by object: those that do not decode are refused, alone. It
// reports false when the answer is no list in JSON. A list in protobuf is made by the server from decoded objects, and
// has none that do not decode.
//
// An object that breaks a watch is met here too: the watch ends, and the list that follows has it.
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

// arriveAlone reads one object of a list; false when it has no name by which it could be told of.
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
	_ = json.Unmarshal(item, &named) // What it has not is looked for next.
	name, _ := named.Metadata.Name.(string)
	namespace, _ := named.Metadata.Namespace.(string)
	if name == "" {
		return nil, false
	}
	a := &arrival{key: k.key(&meta.ObjectMeta{Namespace: namespace, Name: name})}
	a.bad = &ingest.Rejection{Source: k.source, Key: a.key, Reason: "does not decode: " + reasonOf(err)}
	return a, true
}
