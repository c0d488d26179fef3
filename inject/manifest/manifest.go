// Package manifest injects workloads in files of YAML, as the webhook would inject their pods.
//
// Documents that are no workloads, and those of which no pod is injected, come out as they went in, byte by byte. In
// the others what injection does not touch stays, fields that this build does not know included; comments are lost.
package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/inject"
)

// File injects the workloads of one file.
type File struct {
	Injector *inject.Injector
	// Namespace is that of objects without one.
	Namespace string
	// Note is told what is worth knowing about an object. It may be nil.
	Note func(object string, n Note)
}

// Note says why an object is not injected, or what of it has no effect.
type Note struct {
	Warning bool
	Text    string
}

func (n Note) String() string {
	if n.Warning {
		return "warning: " + n.Text
	}
	return "not injected: " + n.Text
}

// Inject injects the workloads of a file's text. An error names the object.
func (f *File) Inject(text []byte) ([]byte, error) {
	var out bytes.Buffer
	for i, doc := range split(text) {
		if i > 0 {
			out.WriteString("---\n")
		}
		injected, err := f.document(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		out.Write(injected)
	}
	return out.Bytes(), nil
}

// split cuts a text at the marks between documents.
func split(text []byte) [][]byte {
	out := [][]byte{nil}
	for line := range bytes.Lines(text) {
		if rest, marked := bytes.CutPrefix(line, []byte("---")); marked && bytes.IndexAny(rest, " \t\r\n") < 1 {
			if out, line = append(out, nil), bytes.TrimLeft(rest, " \t"); len(bytes.TrimSpace(line)) == 0 {
				continue
			}
		}
		out[len(out)-1] = append(out[len(out)-1], line...)
	}
	return out
}

func (f *File) document(doc []byte) ([]byte, error) {
	asJSON, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return nil, fmt.Errorf("expected YAML: %w", err)
	}
	object := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &object); err != nil || len(object) == 0 {
		return doc, nil // a scalar or a list: no object
	}
	changed, err := f.object(object)
	if err != nil || !changed {
		return doc, err
	}
	return yaml.Marshal(object)
}

// object injects an object, or each object of a list, where it stands.
func (f *File) object(object map[string]any) (changed bool, err error) {
	kind, _ := object["kind"].(string)
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		for _, item := range items {
			inner, ok := item.(map[string]any)
			if !ok {
				continue
			}
			one, err := f.object(inner)
			if err != nil {
				return false, err
			}
			changed = changed || one
		}
		return changed, nil
	}
	version, _ := object["apiVersion"].(string)
	path, ok := templatePath(version, kind)
	if !ok {
		return false, nil
	}
	w := workload{Kind: kind, APIVersion: version}
	if meta, ok := object["metadata"].(map[string]any); ok {
		w.Name, _ = meta["name"].(string)
		w.Namespace, _ = meta["namespace"].(string)
	}
	changed, err = f.workload(w, object, path)
	if err != nil {
		return false, fmt.Errorf("%s: %w", w, err)
	}
	return changed, nil
}

// workload is what an object says of itself.
type workload struct {
	Kind, APIVersion, Namespace, Name string
}

func (w workload) String() string {
	if w.Namespace == "" {
		return w.Kind + " " + w.Name
	}
	return w.Kind + " " + w.Namespace + "/" + w.Name
}

// templatePath returns where an object has its pod; an empty path is the object itself.
func templatePath(version, kind string) ([]string, bool) {
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		group = ""
	}
	template := []string{"spec", "template"}
	switch group + "/" + kind {
	case "/Pod":
		return nil, true
	case "apps/Deployment", "apps/DaemonSet", "apps/StatefulSet", "apps/ReplicaSet", "batch/Job", "/ReplicationController",
		"apps.openshift.io/DeploymentConfig", "argoproj.io/Rollout":
		return template, true
	case "batch/CronJob":
		return append([]string{"spec", "jobTemplate"}, template...), true
	}
	return nil, false
}

// workload injects the pod at a path of an object.
func (f *File) workload(w workload, object map[string]any, path []string) (bool, error) {
	parent, template := object, object
	for _, step := range path {
		inner, ok := template[step].(map[string]any)
		if !ok {
			return false, fmt.Errorf("%s: expected an object", strings.Join(path, "."))
		}
		parent, template = template, inner
	}
	raw, err := json.Marshal(template)
	if err != nil {
		return false, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return false, fmt.Errorf("expected a pod: %w", err)
	}
	req := inject.Request{Pod: pod, Namespace: cmp.Or(w.Namespace, f.Namespace)}
	if path != nil {
		req.Workload = &inject.Workload{Type: metav1.TypeMeta{Kind: w.Kind, APIVersion: w.APIVersion},
			Name: types.NamespacedName{Namespace: req.Namespace, Name: w.Name}}
	}
	result, err := f.Injector.Inject(req)
	if err != nil {
		return false, err
	}
	for _, warning := range result.Warnings {
		f.note(w, Note{Warning: true, Text: warning})
	}
	if result.Skipped != "" {
		f.note(w, Note{Text: result.Skipped})
		return false, nil
	}
	patched, err := apply(raw, pod, result.Pod)
	if err != nil {
		return false, err
	}
	if path == nil {
		for k, v := range patched {
			object[k] = v
		}
		return true, nil
	}
	parent[path[len(path)-1]] = patched
	return true, nil
}

func (f *File) note(w workload, n Note) {
	if f.Note != nil {
		f.Note(w.String(), n)
	}
}

// apply makes of raw what injection has made of the pod that was read from it.
func apply(raw []byte, before, after *corev1.Pod) (map[string]any, error) {
	ops, err := inject.Patch(raw, before, after)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		return nil, err
	}
	text, err := patch.Apply(raw)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	err = kjson.UnmarshalCaseSensitivePreserveInts(text, &out)
	return out, err
}
