package edge

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Maker makes objects with edge values. What it makes follows from its seed. Owned by one goroutine.
type Maker struct {
	// Immutable after NewMaker.
	seed  uint64
	kinds []*kindState
	usual map[string]Tree
	turns []int // indexes into kinds, as often as their shares say

	rnd *rand.Rand
	// edges are the edge values by path, as far as they were needed.
	edges map[string][]any
	// made counts objects, and so says whose turn it is. slot is that of the object at work.
	made int
	slot string
}

// kindState is a kind and which of its fields come next.
type kindState struct {
	Kind
	paths     []Path
	templates []Object // slot 0; see template

	// next is the place in paths: every field has its turn before any has a second one.
	next int
}

// NewMaker returns a Maker of those kinds.
func NewMaker(seed uint64, kinds []Kind) (*Maker, error) {
	m := &Maker{seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), usual: make(map[string]Tree),
		edges: make(map[string][]any)}
	if err := yaml.Unmarshal(usual, &m.usual); err != nil {
		return nil, err
	}
	all, err := readDocuments(templates)
	if err != nil {
		return nil, err
	}
	for i, k := range kinds {
		// Without metadata an object has no name.
		s := &kindState{Kind: k, paths: slices.DeleteFunc(Paths(k.Shape), func(p Path) bool {
			return len(p) == 1 &&
				p[0] == "metadata"
		})}
		m.rnd.Shuffle(len(s.paths), func(i, j int) { s.paths[i], s.paths[j] = s.paths[j], s.paths[i] })
		for _, o := range all {
			if o.Key().Kind == k.Name {
				s.templates = append(s.templates, o)
			}
		}
		if len(s.templates) == 0 {
			return nil, fmt.Errorf("there is no template of kind %s", k.Name)
		}
		m.kinds = append(m.kinds, s)
		for range k.Share {
			m.turns = append(m.turns, i)
		}
	}
	m.rnd.Shuffle(len(m.turns), func(i, j int) { m.turns[i], m.turns[j] = m.turns[j], m.turns[i] })
	return m, nil
}

// Fields says how many fields there are of all kinds, and how many had their turn.
func (m *Maker) Fields() (all, had int) {
	for _, k := range m.kinds {
		all += len(k.paths)
		had += min(k.next, len(k.paths))
	}
	return all, had
}

// Next makes an object for a slot.
func (m *Maker) Next(slot int) Object {
	k := m.kinds[m.turns[m.made%len(m.turns)]]
	m.made++
	m.slot = strconv.Itoa(slot)
	if m.rnd.IntN(12) == 0 {
		o := m.template(k, nil)
		m.scatter(k, &o)
		return o
	}
	path := k.paths[k.next%len(k.paths)]
	k.next++
	o := m.template(k, path)
	m.mutate(&o, k, path)
	for m.rnd.IntN(4) == 0 {
		m.mutate(&o, k, k.paths[m.rnd.IntN(len(k.paths))])
	}
	return o
}

// template returns a valid object, if there is one that has the message already in which the path ends.
func (m *Maker) template(k *kindState, path Path) Object {
	fitting := k.templates
	for n := len(path) - 1; n > 1; n-- {
		var have []Object
		for _, o := range k.templates {
			if has(o.Tree, path[:n]) {
				have = append(have, o)
			}
		}
		if len(have) > 0 {
			fitting = have
			break
		}
	}
	o := fitting[m.rnd.IntN(len(fitting))]
	return Object{Tree: fillIn(copyTree(o.Tree), m.slot).(Tree)}
}

// has reports whether something in the tree is at that path.
func has(v any, path Path) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case Tree:
		if path[0] == "{}" {
			return len(v) > 0
		}
		e, ok := v[path[0]]
		return ok && has(e, path[1:])
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return has(e, path[1:]) })
	}
	return false
}

// fillIn puts the slot into the texts of a tree.
func fillIn(v any, slot string) any {
	switch v := v.(type) {
	case Tree:
		for k, e := range v {
			v[k] = fillIn(e, slot)
		}
	case []any:
		for i, e := range v {
			v[i] = fillIn(e, slot)
		}
	case string:
		return strings.ReplaceAll(v, "@", slot)
	}
	return v
}

// scatter gives very many fields a value, edge values and usual ones mixed.
func (m *Maker) scatter(k *kindState, o *Object) {
	o.Made = append(o.Made, "scattered")
	for range 3 + m.rnd.IntN(30) {
		m.mutate(o, k, k.paths[m.rnd.IntN(len(k.paths))])
	}
}

// mutate gives the field at path an edge value.
func (m *Maker) mutate(o *Object, k *kindState, path Path) {
	s := k.Shape.at(path)
	v := m.edge(s, path)
	switch {
	case s.Form == Struct && m.rnd.IntN(3) > 0:
		v = m.usualOf(s)
	case s.Form == List && m.rnd.IntN(3) > 0:
		v = m.several(s, path)
	case s.Form == Map && m.rnd.IntN(3) > 0:
		v = m.entries(s, path)
	}
	o.Made = append(o.Made, fmt.Sprintf("%s = %.120q", path, fmt.Sprint(v)))
	o.Tree = m.put(o.Tree, k.Shape, way{left: path}, v).(Tree)
}

// usualOf returns a message that is valid alone.
func (m *Maker) usualOf(s *Shape) any {
	if t, ok := m.usual[s.Type]; ok {
		return fillIn(copyTree(t), m.slot)
	}
	return Tree{}
}

// valueOf returns some value of a shape: an edge value of a scalar, a usual message.
func (m *Maker) valueOf(s *Shape, path Path) any {
	if s.Form == Struct {
		return m.usualOf(s)
	}
	return m.edge(s, path)
}

// edge returns an edge value of a field.
func (m *Maker) edge(s *Shape, path Path) any {
	at := path.String()
	all, ok := m.edges[at]
	if !ok {
		all = Values(s, path)
		m.edges[at] = all
	}
	return copyTree(all[m.rnd.IntN(len(all))])
}

// several returns a list of one element, of twins, or of very many.
func (m *Maker) several(s *Shape, path Path) any {
	one := m.valueOf(s.Elem, path.with("[]"))
	switch m.rnd.IntN(4) {
	case 0:
		return []any{one}
	case 1:
		return []any{one, copyTree(one)}
	case 2:
		return []any{one, m.valueOf(s.Elem, path.with("[]")), m.valueOf(s.Elem, path.with("[]"))}
	}
	many := make([]any, 0, 1100)
	for i := range 1100 {
		v := copyTree(one)
		if text, ok := v.(string); ok && len(text) < 100 {
			v = text + strconv.Itoa(i)
		}
		many = append(many, v)
	}
	if s.Elem.Form == Struct {
		return many[:60] // Messages are large: files of megabytes try the reader, not the rules.
	}
	return many
}

// entries returns a map of one entry, of some, or of very many.
func (m *Maker) entries(s *Shape, path Path) any {
	n := []int{1, 1, 3, 1100}[m.rnd.IntN(4)]
	out := make(Tree)
	for i := range n {
		key := mapKey(m.rnd, path)
		if n > 3 {
			key = fmt.Sprintf("x-key-%d", i)
		}
		if n > 3 && s.Elem.Form == Struct && i > 60 {
			break
		}
		out[key] = m.valueOf(s.Elem, path.with("{}"))
	}
	return out
}

// way is a path into an object of which a part has been walked.
type way struct{ passed, left Path }

// put returns tree with v at the end of the way, making what is missing on it.
func (m *Maker) put(tree any, s *Shape, w way, v any) any {
	if len(w.left) == 0 {
		return v
	}
	step, rest := w.left[0], way{w.passed.with(w.left[0]), w.left[1:]}
	switch s.Form {
	case List:
		l, _ := tree.([]any)
		i := 0
		if len(l) == 0 {
			l = []any{m.usualOf(s.Elem)}
		} else {
			i = m.rnd.IntN(len(l))
			if with := slices.IndexFunc(l, func(e any) bool { return has(e, rest.left[:min(1, len(rest.left))]) }); with >= 0 &&
				len(rest.left) > 1 {
				i = with
			}
		}
		l[i] = m.put(l[i], s.Elem, rest, v)
		return l
	case Map:
		t, ok := tree.(Tree)
		if !ok || t == nil {
			t = Tree{}
		}
		key := mapKey(m.rnd, w.passed)
		if keys := slices.Sorted(maps.Keys(t)); len(keys) > 0 && m.rnd.IntN(2) == 0 {
			key = keys[m.rnd.IntN(len(keys))]
		}
		t[key] = m.put(t[key], s.Elem, rest, v)
		return t
	}
	t, ok := tree.(Tree)
	if !ok || t == nil {
		t, _ = m.usualOf(s).(Tree)
	}
	f, _ := s.field(step)
	if f.OneOf != "" {
		for _, other := range s.Fields {
			if other.OneOf == f.OneOf && other.Name != step {
				delete(t, other.Name)
			}
		}
	}
	for _, other := range excluded(s.Type, step) {
		delete(t, other)
	}
	t[step] = m.put(t[step], f.Shape, rest, v)
	return t
}

// excluded returns the fields of a message that cannot stand beside that one, where the message's description does not
// say so.
func excluded(message, field string) []string {
	switch message + " " + field {
	case "istio.networking.v1alpha3.HTTPRoute redirect", "istio.networking.v1alpha3.HTTPRoute directResponse":
		return []string{"route", "redirect", "directResponse", "rewrite", "mirrors", "mirror", "timeout", "retries",
			"fault", "delegate"}
	case "istio.networking.v1alpha3.HTTPRoute route", "istio.networking.v1alpha3.HTTPRoute rewrite",
		"istio.networking.v1alpha3.HTTPRoute mirrors",
		"istio.networking.v1alpha3.HTTPRoute timeout", "istio.networking.v1alpha3.HTTPRoute retries",
		"istio.networking.v1alpha3.HTTPRoute fault":
		return []string{"redirect", "directResponse", "delegate"}
	case "istio.networking.v1alpha3.HTTPRoute mirror":
		return []string{"redirect", "directResponse", "delegate", "mirrors"}
	case "istio.networking.v1alpha3.HTTPRewrite uri":
		return []string{"uriRegexRewrite"}
	case "istio.networking.v1alpha3.HTTPRewrite uriRegexRewrite":
		return []string{"uri"}
	case "istio.networking.v1alpha3.ServiceEntry endpoints":
		return []string{"workloadSelector"}
	case "istio.networking.v1alpha3.ServiceEntry workloadSelector":
		return []string{"endpoints"}
	}
	return nil
}
