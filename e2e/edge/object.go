package edge

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Tree is an object or a part of one, as JSON is read: maps, slices, strings, numbers, booleans and nil.
type Tree = map[string]any

//go:embed templates.yaml
var templates []byte

//go:embed usual.yaml
var usual []byte

// Object is one object that was made.
type Object struct {
	Tree Tree
	// Made says what was done to a valid object: paths and values.
	Made []string
}

// Key names the object as pilotd does.
func (o Object) Key() value.ObjectKey {
	meta, _ := o.Tree["metadata"].(Tree)
	kind, _ := o.Tree["kind"].(string)
	version, _ := o.Tree["apiVersion"].(string)
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		group = ""
	}
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	return value.ObjectKey{Kind: value.KindOf(group, kind), Namespace: namespace, Name: name}
}

// JSON returns the object's text, as a file holds it.
func (o Object) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o.Tree); err != nil {
		// Trees are made here, of JSON's types alone.
		panic(fmt.Sprintf("%s: a tree that is no JSON: %v", o.Key(), err))
	}
	return bytes.ReplaceAll(b.Bytes(), []byte(badUTF8), []byte{0xff})
}

// YAML returns the object for people to read.
func (o Object) YAML() string {
	out, err := yaml.JSONToYAML(o.JSON())
	if err != nil {
		return string(o.JSON())
	}
	return string(out)
}

// ReadObjects reads the documents of a YAML text. In strings "@" becomes the slot.
func ReadObjects(text []byte, slot int) ([]Object, error) {
	text = bytes.ReplaceAll(text, []byte("@"), []byte(strconv.Itoa(slot)))
	return readDocuments(text)
}

func readDocuments(text []byte) ([]Object, error) {
	var out []Object
	for doc := range strings.SplitSeq("\n"+string(text), "\n---") {
		var t Tree
		if err := yaml.Unmarshal([]byte(doc), &t); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, doc)
		}
		if t != nil {
			out = append(out, Object{Tree: t})
		}
	}
	return out, nil
}

// copyTree returns a deep copy of a part of a tree.
func copyTree(v any) any {
	switch v := v.(type) {
	case Tree:
		c := make(Tree, len(v))
		for k, e := range v {
			c[k] = copyTree(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = copyTree(e)
		}
		return c
	}
	return v
}

// Copy returns an object of its own.
func (o Object) Copy() Object {
	return Object{Tree: copyTree(o.Tree).(Tree), Made: append([]string(nil), o.Made...)}
}

// Renamed returns the object with a number in its name that is its own.
func (o Object) Renamed(n int) Object {
	o = o.Copy()
	meta := o.Tree["metadata"].(Tree)
	meta["name"] = fmt.Sprintf("%s-%d", meta["name"], n)
	return o
}
