package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	core "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/ingest/crd"
	"github.com/pilotd/pilotd/snapshot/value"
)

// reader decodes one document.
type reader struct {
	// Immutable.
	rules
	lines *lines

	// Result.
	doc *document
}

// header has the fields that every object has.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// rules are the inputs of decoding that do not depend on the document. Immutable.
type rules struct {
	kinds   ingest.KindTable
	mesh    value.ObjectKey // name of the ConfigMap with the mesh configuration
	schemas *crd.Schemas
}

// readDocument decodes the objects of one document.
func readDocument(text []byte, by rules) (doc *document) {
	defer func() {
		if cause := recover(); cause != nil {
			// The whole document is refused, because the object that caused the panic is unknown.
			doc = &document{broken: true, problems: []problem{*fault(cause)}}
		}
	}()
	if len(text) > maxDocument {
		return &document{broken: true,
			problems: []problem{{reason: fmt.Sprintf("has %d bytes in one document: expected at most %d", len(text),
				maxDocument)}}}
	}
	r := &reader{rules: by, lines: &lines{text: text}, doc: &document{}}
	raw := bytes.TrimSpace(text)
	if raw[0] != '{' || !json.Valid(raw) {
		var err error
		if raw, err = toJSON(text); err != nil {
			line, reason := syntaxError(err)
			r.doc.broken = true
			r.doc.problems = []problem{{line: line, reason: reason}}
			return r.doc
		}
	}
	if string(raw) != "null" {
		r.read(raw, "", header{})
	}
	return r.doc
}

// toJSON converts YAML by the rules of Kubernetes ("yes" is true) and refuses duplicate keys. The strict reader also
// takes a merge key (<<) with overridden values for a duplicate, so a second YAML library has the last word.
func toJSON(text []byte) ([]byte, error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err == nil || !bytes.Contains(text, []byte("<<")) {
		return raw, err
	}
	var merged any
	if yaml3.Unmarshal(text, &merged) != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// syntaxError splits a message of the YAML reader into the line, counted from 0, and the reason.
func syntaxError(err error) (line int, reason string) {
	reason = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`(?s)line (\d+): (.*)`).FindStringSubmatch(reason); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			line = n - 1
		}
		reason, _, _ = strings.Cut(m[2], "\n")
	}
	return line, "is not valid YAML or JSON: " + reason
}

// read decodes the object, or the list of objects, at a path of the document. list is the header of the enclosing list.
func (r *reader) read(raw []byte, at string, list header) {
	var h header
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &h); err != nil {
		field, reason := typeError(err)
		if field == "" {
			reason = "is not an object: expected apiVersion, kind and metadata"
		}
		r.refuse(problem{field: field, reason: reason}, at)
		return
	}
	if h.Kind == "" && list.Kind != "List" {
		h.Kind = strings.TrimSuffix(list.Kind, "List")
	}
	if h.APIVersion == "" {
		h.APIVersion = list.APIVersion
	}
	switch {
	case h.Kind == "":
		r.refuse(problem{field: "kind", reason: "is missing: expected the object's kind"}, at)
	case h.APIVersion == "":
		r.refuse(problem{field: "apiVersion", reason: "is missing: expected the version of kind " + h.Kind}, at)
	case len(h.Items) > maxDocuments:
		r.refuse(problem{field: "items", reason: fmt.Sprintf("has %d objects: expected at most %d", len(h.Items),
			maxDocuments)}, at)
	case strings.HasSuffix(h.Kind, "List") && (h.Items != nil || h.Kind == "List"):
		for i, item := range h.Items {
			r.read(item, join(at, "items")+"["+strconv.Itoa(i)+"]", h)
		}
	default:
		r.object(raw, at, h)
	}
}

func (r *reader) object(raw []byte, at string, h header) {
	group, version, ok := strings.Cut(h.APIVersion, "/")
	if !ok {
		group, version = "", h.APIVersion
	}
	k := r.kinds.InAPI(group, h.Kind)
	if k == nil {
		r.doc.skipped++
		return
	}
	namespace := h.Metadata.Namespace
	if namespace == "" {
		namespace = meta.NamespaceDefault
	}
	if k.Name == value.KindConfigMap && namespace == r.mesh.Namespace && h.Metadata.Name == r.mesh.Name {
		k = r.kinds[value.KindMeshConfig]
	}
	key := k.Key(namespace, h.Metadata.Name)
	if field, reason := invalidName(h.Metadata.Name, key.Namespace); reason != "" {
		r.refuse(problem{field: field, reason: reason}, at)
		return
	}
	if k.NotServed != "" {
		r.accept(key, ingest.NotServed{}, at)
		return
	}
	if why := unknownVersion(k, version); why != "" {
		r.refuse(problem{key: key, field: "apiVersion", reason: why}, at)
		return
	}
	typed, bad := decode(k, raw)
	if bad == nil {
		bad = r.judge(k, raw, typed)
	}
	if bad != nil {
		bad.key = key
		r.refuse(*bad, at)
		return
	}
	if c, ok := typed.(*core.ConfigMap); ok && !k.Aside {
		r.accept(key, c.Data[ingest.MeshName], at)
		return
	}
	if k.Aside {
		k.Keep(typed)
	}
	typed.SetNamespace(key.Namespace)
	r.accept(key, typed, at)
}

func (r *reader) accept(key value.ObjectKey, typed any, at string) {
	r.doc.objects = append(r.doc.objects, object{key: key, typed: typed, line: r.lines.at(at)})
}

// refuse records a problem of the object at a path of the document.
func (r *reader) refuse(p problem, at string) {
	p.line = r.lines.at(join(at, p.field))
	r.doc.problems = append(r.doc.problems, p)
}

func invalidName(name, namespace string) (field, reason string) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "metadata.name", fmt.Sprintf("%q is no name: expected lower case letters, digits, '-' and '.'", name)
	}
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return "metadata.namespace", fmt.Sprintf("%q is no namespace: expected lower case letters, digits and '-'",
			namespace)
	}
	return "", ""
}

// decode decodes an object into its Go type.
func decode(k *ingest.Kind, raw []byte) (ingest.Object, *problem) {
	typed := k.New()
	unknown, err := kjson.UnmarshalStrict(raw, typed)
	if err != nil {
		field, reason := typeError(err)
		if s := specOf(k, typed); s != nil {
			if f, why := locate(s, raw); f != "" {
				field, reason = f, why
			}
		}
		return nil, &problem{field: field, reason: reason}
	}
	for _, u := range unknown {
		if field, ok := strings.CutPrefix(u.Error(), "unknown field "); ok && !k.Lenient {
			field = strings.Trim(field, `"`)
			if !strings.HasPrefix(field, "status.") {
				return nil, &problem{field: field, reason: "is unknown: expected a field of " + k.APIName()}
			}
		}
	}
	if s := specOf(k, typed); s != nil {
		if field, message := unknownField(s, raw); field != "" {
			return nil, &problem{field: field, reason: "is unknown: expected a field of " + message}
		}
	}
	return typed, nil
}

// judge returns the reason why an API server would refuse a decoded object: malformed metadata, or a mismatch with the
// schema of its kind.
func (r *reader) judge(k *ingest.Kind, raw []byte, typed ingest.Object) *problem {
	faults := metavalidation.ValidateLabels(typed.GetLabels(), field.NewPath("metadata", "labels"))
	faults = append(faults, apivalidation.ValidateAnnotations(typed.GetAnnotations(),
		field.NewPath("metadata", "annotations"))...)
	if len(faults) > 0 {
		return &problem{field: faults[0].Field, reason: faults[0].ErrorBody()}
	}
	if k.Spec == nil {
		return nil
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return &problem{reason: err.Error()}
	}
	delete(object, "status") // status is a subresource of Istio's kinds, so users do not write it
	if f, ok := r.schemas.Judge(k.Name, object); !ok {
		return &problem{field: f.Field, reason: f.Reason}
	}
	return nil
}

// typeError says which field has a value of the wrong type.
func typeError(err error) (field, reason string) {
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
		return t.Field, fmt.Sprintf("is a %s: expected %s", t.Value, t.Type)
	}
	return "", err.Error()
}

// join appends a field to a path.
func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}
