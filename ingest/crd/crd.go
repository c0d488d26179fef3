package crd

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/pilotd/pilotd/snapshot/value"
)

//go:embed schemas.json
var schemas []byte

// Schemas holds the schemas of Istio's kinds. Safe for concurrent use.
type Schemas struct {
	// Immutable after New.
	kinds map[value.Kind]func() (*compiled, error)
}

// compiled validates the objects of one kind. Immutable.
type compiled struct {
	structural *schema.Structural
	types      validation.SchemaValidator
	rules      *cel.Validator
}

// New returns the schemas of all kinds. Each is compiled when it is first used.
func New() *Schemas {
	s := &Schemas{kinds: map[value.Kind]func() (*compiled, error){}}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(schemas, &raw); err != nil {
		panic(fmt.Sprintf("crd: schemas.json, which is compiled in: %v", err))
	}
	for kind, text := range raw {
		s.kinds[value.Kind(kind)] = sync.OnceValues(func() (*compiled, error) { return compile(text) })
	}
	return s
}

func compile(text []byte) (*compiled, error) {
	var v1 apiv1.JSONSchemaProps
	if err := json.Unmarshal(text, &v1); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	types, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	return &compiled{structural: structural, types: types, rules: cel.NewValidator(structural, true,
		celconfig.PerCallLimit)}, nil
}

// Fault says why an object does not match the schema of its kind.
type Fault struct {
	// Field is the path of the invalid field; Reason says what is wrong with it and what was expected.
	Field, Reason string
}

// Judge returns the first fault of an object, in the order of its fields' paths. ok is true if it has none, or if its
// kind has no schema. object is the decoded JSON of the object, with numbers as int64 or float64. Judge removes unknown
// fields and nulls from it, as an API server does.
func (s *Schemas) Judge(kind value.Kind, object map[string]any) (_ Fault, ok bool) {
	of, known := s.kinds[kind]
	if !known {
		return Fault{}, true
	}
	c, err := of()
	if err != nil {
		panic(fmt.Sprintf("crd: the schema of %s, which is compiled in: %v", kind, err))
	}
	unknown := pruning.PruneWithOptions(object, c.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return Fault{unknown[0], "is unknown: expected a field of " + kind.Name()}, false
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.structural)
	defaulting.Default(object, c.structural)
	faults := validation.ValidateCustomResource(nil, object, c.types)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	if len(faults) == 0 { // CEL rules may read a field only if its type is right
		faults, _ = c.rules.Validate(context.Background(), nil, c.structural, object, nil,
			celconfig.RuntimeCELCostBudget)
	}
	if len(faults) == 0 {
		return Fault{}, true
	}
	first := slices.MinFunc(faults, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	return faultOf(first), false
}

// faultOf converts an error of the validation library. Some errors name their field only at the start of the detail.
func faultOf(e *field.Error) Fault {
	at, detail := e.Field, e.Detail
	if m := regexp.MustCompile(`(?s)^"([^"]*)" (.*)$`).FindStringSubmatch(detail); m != nil &&
		(at == "" || at == "<nil>") {
		at, detail = m[1], m[2]
	}
	return Fault{path(at), reason(e, strings.TrimPrefix(detail, at+" in body "))}
}

// path rewrites a field's path to the form that pilotd uses, with map entries behind a dot.
func path(p string) string {
	return regexp.MustCompile(`\[([^\]\d][^\]]*)\]`).ReplaceAllString(p, ".$1")
}

// reason says what is wrong, and quotes the invalid value if it is short and not a message.
func reason(e *field.Error, detail string) string {
	const longest = 128
	var got string
	switch v := e.BadValue.(type) {
	case string:
		got = fmt.Sprintf("%q", v)
	case int64, float64, bool:
		got = fmt.Sprint(v)
	}
	detail = strings.Join(strings.Fields(detail), " ")
	switch {
	case e.Type == field.ErrorTypeRequired:
		return "is missing: " + cmp.Or(detail, "expected a value")
	case detail == "":
		return strings.Join(strings.Fields(e.ErrorBody()), " ")
	case got == "" || len(got) > longest:
		return detail
	}
	return detail + ", got " + got
}
