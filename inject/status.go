package inject

import (
	"encoding/json"
	"fmt"

	"istio.io/api/annotation"
)

// status is annotation sidecar.istio.io/status: what an injection has put into the pod.
type status struct {
	InitContainers   []string `json:"initContainers"`
	Containers       []string `json:"containers"`
	Volumes          []string `json:"volumes"`
	ImagePullSecrets []string `json:"imagePullSecrets"`
	Revision         string   `json:"revision"`
}

func (i *injection) readStatus() error {
	text, ok := i.original.Annotations[annotation.SidecarStatus.Name]
	if !ok {
		return nil
	}
	i.before = &status{}
	if err := json.Unmarshal([]byte(text), i.before); err != nil {
		return fmt.Errorf("annotation %s: expected the JSON that an injection has written: %w",
			annotation.SidecarStatus.Name, err)
	}
	return nil
}

// status says what templates have put into a pod. Names that were there before stand in the order that they had.
func (i *injection) status() (string, error) {
	spec := &i.injected.Spec
	s := status{Revision: i.settings.Revision}
	for _, c := range spec.InitContainers {
		s.InitContainers = append(s.InitContainers, c.Name)
	}
	for _, c := range spec.Containers {
		s.Containers = append(s.Containers, c.Name)
	}
	for _, v := range spec.Volumes {
		s.Volumes = append(s.Volumes, v.Name)
	}
	for _, p := range spec.ImagePullSecrets {
		s.ImagePullSecrets = append(s.ImagePullSecrets, p.Name)
	}
	if was := i.before; was != nil {
		itself := func(name string) string { return name }
		keep(s.InitContainers, was.InitContainers, itself)
		keep(s.Containers, was.Containers, itself)
	}
	text, err := json.Marshal(s)
	return string(text), err
}
