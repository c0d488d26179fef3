package inject

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func toMap(pod *corev1.Pod) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
}

func fromMap(m map[string]any) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, pod)
	return pod, err
}

// merge lays an overlay over a pod, both as maps, and takes both over.
func (in *Injector) merge(onto, over map[string]any) (map[string]any, error) {
	return strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(onto, over, in.schema)
}

// mergeContainers lays containers over those of a pod that have their names.
func (in *Injector) mergeContainers(pod *corev1.Pod, over containers) (*corev1.Pod, error) {
	onto, err := toMap(pod)
	if err != nil {
		return nil, err
	}
	partial := &corev1.Pod{}
	partial.Spec.Containers, partial.Spec.InitContainers = over.Containers, over.InitContainers
	patch, err := toMap(partial)
	if err != nil {
		return nil, err
	}
	prune(patch)
	if onto, err = in.merge(onto, patch); err != nil {
		return nil, err
	}
	return fromMap(onto)
}

// prune removes what a typed object writes although nobody set it: null deletes in a strategic merge patch.
func prune(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			prune(v)
		case []any:
			for _, e := range v {
				if inner, ok := e.(map[string]any); ok {
					prune(inner)
				}
			}
		}
	}
}
