package overlay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"istio.io/api/annotation"
)

// UserVolumes reads annotation sidecar.istio.io/userVolume: a JSON list of volumes, or an object of them by name.
func UserVolumes(text string) ([]corev1.Volume, error) {
	return named(text, func(v *corev1.Volume, name string) {
		v.Name = cmp.Or(v.Name, name)
	})
}

// UserVolumeMounts reads annotation sidecar.istio.io/userVolumeMount, likewise.
func UserVolumeMounts(text string) ([]corev1.VolumeMount, error) {
	return named(text, func(m *corev1.VolumeMount, name string) {
		m.Name = cmp.Or(m.Name, name)
	})
}

// named reads a JSON list of T, or an object of T by name.
func named[T any](text string, setName func(*T, string)) ([]T, error) {
	if bytes.HasPrefix(bytes.TrimSpace([]byte(text)), []byte("[")) {
		var out []T
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &out); err != nil {
			return nil, fmt.Errorf("expected a JSON list or object: %w", err)
		}
		for i := range out {
			setName(&out[i], fmt.Sprint(i))
		}
		return out, nil
	}
	byName := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &byName); err != nil {
		return nil, fmt.Errorf("expected a JSON list or object: %w", err)
	}
	var out []T
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		var one T
		if err := kjson.UnmarshalCaseSensitivePreserveInts(byName[name], &one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		setName(&one, name)
		out = append(out, one)
	}
	return out, nil
}

func (d *Data) userVolumes() ([]corev1.Volume, error) {
	if !d.has(annotation.SidecarUserVolume.Name) {
		return nil, nil
	}
	out, err := UserVolumes(d.annotation(annotation.SidecarUserVolume.Name, ""))
	return out, about(annotation.SidecarUserVolume.Name, err)
}

func (d *Data) userVolumeMounts() ([]corev1.VolumeMount, error) {
	if !d.has(annotation.SidecarUserVolumeMount.Name) {
		return nil, nil
	}
	out, err := UserVolumeMounts(d.annotation(annotation.SidecarUserVolumeMount.Name, ""))
	return out, about(annotation.SidecarUserVolumeMount.Name, err)
}

// about adds to an error which annotation it is about.
func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("annotation %s: %w", name, err)
}
