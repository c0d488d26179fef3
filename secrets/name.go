package secrets

import (
	"fmt"
	"strings"
)

// Object names a Secret or a ConfigMap.
type Object struct {
	ConfigMap       bool
	Namespace, Name string
}

func (o Object) String() string {
	kind := "Secret "
	if o.ConfigMap {
		kind = "ConfigMap "
	}
	return kind + o.Namespace + "/" + o.Name
}

// Part is what of an object a resource is made of.
type Part uint8

const (
	// Certificate is a certificate with its key.
	Certificate Part = iota
	// Roots are those that certificates of others are checked by.
	Roots
)

// Asked is what the name of a resource asks for.
type Asked struct {
	// Resource is the name.
	Resource string
	Part     Part
	// Objects are those that may have it; the first that is there counts.
	Objects []Object
	// Reviewed tells that only who may list Secrets gets it.
	Reviewed bool
}

// The forms of names.
const (
	secretScheme    = "kubernetes://"
	gatewayScheme   = "kubernetes-gateway://"
	configMapScheme = "configmap://"
	// rootsSuffix ends the name of a resource, and of a Secret beside another one, that has roots.
	rootsSuffix = "-cacert"
)

// Parse says what a name asks for when somebody of a namespace asks: kubernetes://NAME, kubernetes://NAMESPACE/NAME,
// kubernetes-gateway://NAMESPACE/NAME or configmap://NAMESPACE/NAME; with -cacert at the end for the roots. Objects of
// other namespaces are refused.
func Parse(resource, namespace string) (Asked, error) {
	a := Asked{Resource: resource}
	o := Object{Namespace: namespace}
	rest, form := resource, ""
	for _, scheme := range []string{secretScheme, gatewayScheme, configMapScheme} {
		if after, ok := strings.CutPrefix(resource, scheme); ok {
			rest, form = after, scheme
		}
	}
	if form == "" {
		return a, &refusedError{BadName, fmt.Sprintf("%q is not a name of a secret: want kubernetes://NAME, "+
			"kubernetes://NAMESPACE/NAME, kubernetes-gateway://NAMESPACE/NAME or configmap://NAMESPACE/NAME", cut(resource))}
	}
	first, second, qualified := strings.Cut(rest, "/")
	if o.Name = first; qualified {
		o.Namespace, o.Name = first, second
	}
	base, roots := strings.CutSuffix(o.Name, rootsSuffix)
	switch {
	case base == "" || o.Namespace == "" || strings.Contains(o.Name, "/") || !qualified && form != secretScheme:
		return a, &refusedError{BadName, fmt.Sprintf("%q names no object: want %sNAMESPACE/NAME", cut(resource), form)}
	case o.Namespace != namespace:
		return a, &refusedError{Foreign, fmt.Sprintf("it is of namespace %q: a proxy gets secrets of its own namespace %s only",
			cut(o.Namespace), namespace)}
	}
	switch o.ConfigMap = form == configMapScheme; {
	case o.ConfigMap:
		o.Name = base
		a.Part, a.Objects = Roots, []Object{o}
	case roots:
		beside := o
		o.Name = base
		a.Part, a.Objects = Roots, []Object{beside, o}
	default:
		a.Objects, a.Reviewed = []Object{o}, true
	}
	return a, nil
}

// Resource returns the name that proxies ask by for a credential of an object of Istio's.
func Resource(credential string, part Part) string {
	if !strings.Contains(credential, "://") {
		credential = secretScheme + credential
	}
	if part == Roots {
		credential = strings.TrimSuffix(credential, rootsSuffix) + rootsSuffix
	}
	return credential
}

// maxQuoted is how much of a name is told.
const maxQuoted = 128

func cut(name string) string {
	if len(name) > maxQuoted {
		return name[:maxQuoted] + "…"
	}
	return name
}
