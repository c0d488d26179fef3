package ingest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// asideKinds returns the kinds whose objects gateways name and fetch one by one: those with certificates, keys and
// roots.
func asideKinds() []Kind {
	secret := builtin[corev1.Secret, corev1.SecretList](Kind{Name: value.KindSecret, Plural: "secrets",
		InNamespaces: true, Aside: true})
	secret.Keep = func(o Object) {
		s := o.(*corev1.Secret)
		keepUseful(s.Data)
		keepUseful(s.StringData)
	}
	configMap := builtin[corev1.ConfigMap, corev1.ConfigMapList](Kind{Name: value.KindConfigMap, Plural: "configmaps",
		InNamespaces: true, Aside: true})
	configMap.Keep = func(o Object) {
		c := o.(*corev1.ConfigMap)
		keepUseful(c.Data)
		keepUseful(c.BinaryData)
	}
	return []Kind{secret, configMap}
}

// keepUseful clears the values of all keys that pilotd never reads.
func keepUseful[V string | []byte](data map[string]V) {
	for k := range data {
		switch k {
		case "tls.crt", "tls.key", "ca.crt", "ca.crl", "tls.ocsp-staple", "cert", "key", "cacert", "crl":
		default:
			var none V
			data[k] = none
		}
	}
}

// Credential returns the data, by key, of an object of one of the asideKinds; nil for a deleted object.
func Credential(object any) map[string][]byte {
	out := map[string][]byte{}
	switch o := object.(type) {
	case *corev1.Secret:
		maps.Copy(out, o.Data)
		for k, v := range o.StringData { // stringData takes precedence over data
			out[k] = []byte(v)
		}
	case *corev1.ConfigMap:
		for k, v := range o.Data {
			out[k] = []byte(v)
		}
		maps.Copy(out, o.BinaryData)
	default:
		return nil
	}
	return out
}
