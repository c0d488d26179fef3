package admission

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The API server gives the volume of a pod's service account a name of its own in each pod: five characters behind
// accessVolume, of which none is a 0. commonName stands for all of them, and commonTime for all times.
const (
	accessVolume = "kube-api-access-"
	commonName   = accessVolume + "00000"
	commonTime   = "2000-01-01T00:00:00Z"
)

// alike is the JSON of a pod in which what differs between the pods of one workload is the same for all: the name of
// the volume of the service account, and the times of managedFields. Built-in templates and all that follows them carry
// that name along and do not look at it, and they leave managedFields alone. So what injection makes of text, with the
// name put back, is what it makes of the pod.
type alike struct {
	text []byte
	// name is the volume's name in the pod; none if the pod has no such volume.
	name []byte
	// names and times are how many of each were replaced.
	names, times int
}

// alikeOf reads the JSON of a pod, which stays as it is. ok is false where the pod may be like no other: it has two of
// these names, or one that could be something else than the name of a volume.
func alikeOf(raw []byte) (a alike, ok bool) {
	a.text = bytes.Clone(raw)
	if !a.replaceNames() {
		return a, false
	}
	return a, a.replaceTimes()
}

// replaceNames replaces the name of the volume wherever it stands.
func (a *alike) replaceNames() bool {
	const before, after = `"name":"`, `"`
	for at := 0; ; {
		n := bytes.Index(a.text[at:], []byte(accessVolume))
		if n < 0 {
			return true
		}
		from := at + n
		at = from + len(commonName)
		if at >= len(a.text) || !bytes.HasSuffix(a.text[:from], []byte(before)) ||
			!bytes.HasPrefix(a.text[at:], []byte(after)) || !generated(a.text[from+len(accessVolume):at]) {
			return false
		}
		switch name := a.text[from:at]; {
		case a.name == nil:
			a.name = bytes.Clone(name)
		case !bytes.Equal(a.name, name):
			return false
		}
		copy(a.text[from:], commonName)
		a.names++
	}
}

// generated tells whether the API server may have made the end of a name by chance.
func generated(end []byte) bool {
	for _, c := range end {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// replaceTimes replaces each time of managedFields.
func (a *alike) replaceTimes() bool {
	const before, after = `"time":"`, `"`
	for at := 0; ; {
		n := bytes.Index(a.text[at:], []byte(before))
		if n < 0 {
			return true
		}
		from := at + n + len(before)
		at = from + len(commonTime)
		if at >= len(a.text) || !bytes.HasPrefix(a.text[at:], []byte(after)) {
			return false
		}
		if _, err := time.Parse(time.RFC3339, string(a.text[from:at])); err != nil {
			return false
		}
		copy(a.text[from:], commonTime)
		a.times++
	}
}

// readAs tells whether all that was replaced is what it was taken for, now that text is read.
func (a *alike) readAs(pod *corev1.Pod) bool {
	names, times := 0, 0
	for i := range pod.Spec.Volumes {
		names += count(pod.Spec.Volumes[i].Name)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				names += count(list[i].VolumeMounts[j].Name)
			}
		}
	}
	for i := range pod.ManagedFields {
		if pod.ManagedFields[i].Time != nil {
			times++
		}
	}
	return names == a.names && times == a.times
}

func count(name string) int {
	if name == commonName {
		return 1
	}
	return 0
}
