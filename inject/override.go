package inject

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/api/annotation"

	"github.com/pilotd/pilotd/inject/overlay"
)

// imageAuto is the image of a user's own container that wants the one that injection takes.
const imageAuto = "auto"

// containers is annotation proxy.istio.io/overrides: the user's own containers of names that were injected, as they
// were before.
type containers struct {
	Containers     []corev1.Container `json:"containers,omitempty"`
	InitContainers []corev1.Container `json:"initContainers,omitempty"`
}

// remembered returns the user's containers that an earlier injection has written down.
func (i *injection) remembered() (containers, error) {
	var out containers
	text, ok := i.original.Annotations[annotation.ProxyOverrides.Name]
	if !ok || i.before == nil {
		return out, nil
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return out, fmt.Errorf("annotation %s: expected the JSON that an injection has written: %w",
			annotation.ProxyOverrides.Name, err)
	}
	return out, nil
}

// uninjected returns the pod as far as can be told as it was before an earlier injection; templates look at it.
func (i *injection) uninjected() (*corev1.Pod, error) {
	pod := i.original.DeepCopy()
	if i.before == nil {
		return pod, nil
	}
	own, err := i.remembered()
	if err != nil {
		return nil, err
	}
	if p := find(own.InitContainers, overlay.ProxyContainer); p != nil && p.RestartPolicy == nil {
		// The user had it among the containers: as an init container it would have had to say that it goes on running.
		own.Containers = append(own.Containers, *p)
		own.InitContainers = slices.DeleteFunc(own.InitContainers,
			func(c corev1.Container) bool { return c.Name == overlay.ProxyContainer })
	}
	pod.Spec.Containers = restored(pod.Spec.Containers, i.before.Containers, own.Containers)
	pod.Spec.InitContainers = restored(pod.Spec.InitContainers, i.before.InitContainers, own.InitContainers)
	if v := variable(proxyOf(i.original), envApplications); v != nil {
		sortLike(pod.Spec.Containers, strings.Split(v.Value, ","))
	}
	delete(pod.Annotations, annotation.SidecarStatus.Name)
	if merged(pod, i.statusPort()) {
		clearScraping(pod.Annotations)
	}
	return pod, nil
}

// envApplications has the names of the pod's containers but the proxy's, in their order before they were injected.
const envApplications = "ISTIO_META_APP_CONTAINERS"

// sortLike sorts containers by names; others go to the end.
func sortLike(of []corev1.Container, names []string) {
	place := func(c corev1.Container) int {
		if n := slices.Index(names, c.Name); n >= 0 {
			return n
		}
		return len(names)
	}
	slices.SortStableFunc(of, func(a, b corev1.Container) int { return place(a) - place(b) })
}

// restored returns containers with those that were injected as the user had them, or without them.
func restored(now []corev1.Container, injected []string, own []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range now {
		if !slices.Contains(injected, c.Name) {
			out = append(out, c)
		} else if user := find(own, c.Name); user != nil {
			out = append(out, *user.DeepCopy())
		}
	}
	for _, user := range own {
		if find(out, user.Name) == nil {
			out = append(out, user)
		}
	}
	return out
}

// restoreUsers lays the user's own containers over the injected ones of their names: what the user says stands. It
// writes them down, for a later injection meets them mixed with what this one put in.
func (i *injection) restoreUsers() error {
	if err := i.clash(); err != nil {
		return err
	}
	own, err := i.remembered()
	if err != nil {
		return err
	}
	found := i.overridden(own)
	placed := i.placed(own)
	i.dropStale(placed)
	over := containers{slices.Concat(withoutProbes(placed.Containers), found.Containers),
		slices.Concat(withoutProbes(placed.InitContainers), found.InitContainers)}
	if len(over.Containers)+len(over.InitContainers) > 0 {
		if i.pod, err = i.mergeContainers(i.pod, over); err != nil {
			return fmt.Errorf("the pod's own containers cannot be merged over the injected ones: %w", err)
		}
	}
	if len(found.Containers)+len(found.InitContainers) > 0 {
		text, err := json.Marshal(containers{slices.Concat(own.Containers, found.Containers),
			slices.Concat(own.InitContainers, found.InitContainers)})
		if err != nil {
			return err
		}
		setAnnotation(i.pod, annotation.ProxyOverrides.Name, string(text))
	}
	i.adjustCapture(over)
	return nil
}

// placed moves the user's own proxy into the list in which this injection puts the proxy.
func (i *injection) placed(own containers) containers {
	isProxy := func(c corev1.Container) bool { return c.Name == overlay.ProxyContainer }
	all := slices.Concat(own.Containers, own.InitContainers)
	at := slices.IndexFunc(all, isProxy)
	if at < 0 {
		return own
	}
	out := containers{slices.DeleteFunc(slices.Clone(own.Containers), isProxy),
		slices.DeleteFunc(slices.Clone(own.InitContainers), isProxy)}
	if proxy := all[at]; find(i.injected.Spec.InitContainers, overlay.ProxyContainer) != nil {
		out.InitContainers = append(out.InitContainers, proxy)
	} else {
		proxy.RestartPolicy = nil
		out.Containers = append(out.Containers, proxy)
	}
	return out
}

// users returns the pod's own container of an injected name in a list; nil where it is one that was injected before.
func (i *injection) users(in []corev1.Container, name string) *corev1.Container {
	if b := i.before; b != nil && (slices.Contains(b.Containers, name) || slices.Contains(b.InitContainers, name)) {
		return nil
	}
	return find(in, name)
}

// clash refuses a pod that has a container of an injected name in the other of its two lists: names are unique in a
// pod. A proxy among the containers is no clash, for it moves to where a native sidecar is.
func (i *injection) clash() error {
	for _, c := range i.injected.Spec.InitContainers {
		if c.Name != overlay.ProxyContainer && i.users(i.original.Spec.Containers, c.Name) != nil {
			return fmt.Errorf("container %s has the name of an init container that is injected", c.Name)
		}
	}
	for _, c := range i.injected.Spec.Containers {
		if i.users(i.original.Spec.InitContainers, c.Name) != nil {
			return fmt.Errorf("init container %s has the name of a container that is injected", c.Name)
		}
	}
	return nil
}

// overridden returns the user's containers that templates put in, too, but for those that are known already.
func (i *injection) overridden(known containers) containers {
	var out containers
	for _, c := range i.injected.Spec.Containers {
		if user := i.users(i.original.Spec.Containers, c.Name); user != nil && find(known.Containers, c.Name) == nil {
			out.Containers = append(out.Containers, withoutAuto(user))
		}
	}
	for _, c := range i.injected.Spec.InitContainers {
		user := i.users(i.original.Spec.InitContainers, c.Name)
		if user == nil {
			user = i.users(i.original.Spec.Containers, c.Name) // a proxy that becomes a native sidecar
		}
		if user != nil && find(known.InitContainers, c.Name) == nil {
			out.InitContainers = append(out.InitContainers, withoutAuto(user))
		}
	}
	return out
}

func withoutAuto(c *corev1.Container) corev1.Container {
	out := *c.DeepCopy()
	if out.Image == imageAuto {
		out.Image = ""
	}
	return out
}

// withoutProbes leaves out the probes and hooks of containers that an earlier injection has sent to the agent.
func withoutProbes(of []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range of {
		if c.Name != overlay.ProxyContainer {
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
		}
		out = append(out, c)
	}
	return out
}

// dropStale removes containers that would stand in the pod twice, or that only an earlier injection wanted: a proxy
// that has become a native sidecar, or is none any more.
func (i *injection) dropStale(own containers) {
	spec := &i.pod.Spec
	spec.Containers = slices.DeleteFunc(spec.Containers, func(c corev1.Container) bool {
		return find(i.injected.Spec.InitContainers, c.Name) != nil && find(i.injected.Spec.Containers, c.Name) == nil ||
			i.before != nil && stale(c.Name, i.before.Containers, i.injected.Spec.Containers, own.Containers)
	})
	spec.InitContainers = slices.DeleteFunc(spec.InitContainers, func(c corev1.Container) bool {
		return i.before != nil && stale(c.Name, i.before.InitContainers, i.injected.Spec.InitContainers, own.InitContainers)
	})
}

// stale tells whether one of the mesh's own containers was injected before, is not any more, and is not the user's.
func stale(name string, before []string, now, own []corev1.Container) bool {
	switch name {
	case overlay.ProxyContainer, "istio-init", "istio-validation":
		return slices.Contains(before, name) && find(now, name) == nil && find(own, name) == nil
	}
	return false
}

// adjustCapture lets the user whom the user's own proxy container runs as pass the rules uncaptured. With TPROXY the
// proxy stays root.
func (i *injection) adjustCapture(own containers) {
	user := find(own.Containers, overlay.ProxyContainer)
	if user == nil {
		user = find(own.InitContainers, overlay.ProxyContainer)
	}
	if user == nil || user.SecurityContext == nil {
		return
	}
	as, tproxy := user.SecurityContext, i.tproxy()
	if proxy := proxyOf(i.pod); tproxy && as.RunAsUser != nil && proxy != nil && proxy.SecurityContext != nil {
		proxy.SecurityContext.RunAsUser = new(int64(0))
	}
	capture := find(i.pod.Spec.InitContainers, "istio-init")
	if capture == nil {
		if capture = find(i.pod.Spec.InitContainers, "istio-validation"); capture == nil {
			return
		}
		if s := capture.SecurityContext; s != nil && !tproxy {
			if as.RunAsUser != nil {
				s.RunAsUser = new(*as.RunAsUser)
			}
			if as.RunAsGroup != nil {
				s.RunAsGroup = new(*as.RunAsGroup)
			}
		}
	}
	at := slices.Index(capture.Args, "-u")
	if as.RunAsUser == nil || *as.RunAsUser == 0 || at < 0 || at+1 >= len(capture.Args) {
		return
	}
	capture.Args[at+1] = strconv.FormatInt(*as.RunAsUser, 10)
}

func (i *injection) tproxy() bool {
	mode := i.data.ProxyConfig.GetInterceptionMode().String()
	if m, ok := i.pod.Annotations[annotation.SidecarInterceptionMode.Name]; ok {
		mode = m
	}
	return mode == "TPROXY"
}

func find(in []corev1.Container, name string) *corev1.Container {
	for i := range in {
		if in[i].Name == name {
			return &in[i]
		}
	}
	return nil
}

func setAnnotation(pod *corev1.Pod, name, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[name] = value
}
