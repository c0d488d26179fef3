package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// MaxText is how many bytes a custom template may write. A pod is far smaller; a template that loops is stopped.
const MaxText = 1 << 20

var errTooLong = errors.New("writes more than 1 MiB")

// Template is a custom template.
type Template struct {
	text *template.Template
}

// Surroundings is what functions of custom templates know beside their arguments.
type Surroundings struct {
	// Env is what the function "env" looks names up in.
	Env map[string]string
	// DefaultProxy is what agents assume; "protoToJSON" leaves out what a ProxyConfig has equal to it.
	DefaultProxy *meshconfig.ProxyConfig
}

// Parse reads the text of a custom template.
func Parse(name, text string, around Surroundings) (*Template, error) {
	t, err := template.New(name).Funcs(functions(around)).Parse(text)
	if err != nil {
		return nil, err
	}
	return &Template{t}, nil
}

// Execute makes the overlay for a pod: as JSON values, with the directives of strategic merge patches still in it.
// What it writes of fields that a pod does not have has no effect; the warnings name them.
func (t *Template) Execute(d *Data) (out map[string]any, warnings []string, err error) {
	var b bounded
	if err := t.text.Execute(&b, d); err != nil {
		return nil, nil, err
	}
	asJSON, err := yaml.YAMLToJSON(b.Bytes())
	if err != nil {
		return nil, nil, fmt.Errorf("template %s does not write YAML: %w", t.text.Name(), err)
	}
	out = map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &out); err != nil {
		return nil, nil, fmt.Errorf("template %s does not write an object: %w", t.text.Name(), err)
	}
	unknown, err := kjson.UnmarshalStrict(asJSON, &corev1.Pod{})
	if err != nil {
		return nil, nil, fmt.Errorf("template %s does not write a pod: %w", t.text.Name(), err)
	}
	for _, u := range unknown {
		if text := u.Error(); !directive(text) {
			warnings = append(warnings, fmt.Sprintf("template %s: %s: it has no effect", t.text.Name(), text))
		}
	}
	return out, warnings, nil
}

// directive reports whether an unknown field is one by which a strategic merge patch says how it is merged.
func directive(unknown string) bool {
	path := strings.TrimSuffix(unknown, `"`)
	field := path[strings.LastIndexAny(path, `."`)+1:]
	for _, d := range []string{"$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"} {
		if strings.HasPrefix(field, d) {
			return true
		}
	}
	return false
}

// functions returns what templates may call: Istio's, and those of sprig that give the same result each time. Sprig's
// own list of these has some that make keys and salts, roll dice, or fall back on the present time.
func functions(around Surroundings) template.FuncMap {
	out := sprig.HermeticTxtFuncMap()
	maps.DeleteFunc(out, func(name string, _ any) bool { return strings.HasPrefix(name, "gen") })
	for _, name := range []string{"bcrypt", "htpasswd", "encryptAES", "derivePassword", "shuffle", "randInt", "ago", "htmlDate",
		"htmlDateInZone"} {
		delete(out, name)
	}
	maps.Copy(out, istioFunctions(around))
	return out
}

// bounded takes at most MaxText bytes.
type bounded struct {
	bytes.Buffer
}

// Write takes p, or nothing of it when the bound is passed.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxText {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}
