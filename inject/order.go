package inject

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/inject/overlay"
)

// order puts containers where they have to be. The proxy goes last, so that tools that take the first container take
// the application's; or first, where applications wait for it. Init containers come before the capture of traffic,
// which would cut them off, unless the proxy is among them and serves them.
func (i *injection) order() {
	spec := &i.pod.Spec
	if i.data.ProxyConfig.GetHoldApplicationUntilProxyStarts().GetValue() ||
		i.chart.Global.Proxy.HoldApplicationUntilProxyStart {
		first(spec.Containers, overlay.ProxyContainer)
	} else {
		last(spec.Containers, overlay.ProxyContainer)
	}
	if find(spec.InitContainers, overlay.ProxyContainer) != nil {
		first(spec.InitContainers, coreDump)
		first(spec.InitContainers, overlay.ProxyContainer)
		first(spec.InitContainers, "istio-validation")
		first(spec.InitContainers, "istio-init")
		return
	}
	first(spec.InitContainers, "istio-validation")
	last(spec.InitContainers, "istio-init")
	last(spec.InitContainers, coreDump)
}

// coreDump is the init container of templates of old that lets the proxy leave core dumps. It keeps its place beside
// the proxy.
const coreDump = "enable-core-dump"

// first moves the container of a name to the front.
func first(in []corev1.Container, name string) {
	slices.SortStableFunc(in, func(a, b corev1.Container) int { return isCalled(b, name) - isCalled(a, name) })
}

// last moves the container of a name to the end.
func last(in []corev1.Container, name string) {
	slices.SortStableFunc(in, func(a, b corev1.Container) int { return isCalled(a, name) - isCalled(b, name) })
}

func isCalled(c corev1.Container, name string) int {
	if c.Name == name {
		return 1
	}
	return 0
}

// keepOrder restores the order of what was there before an injection that is not the first, so that an injection
// without new settings changes nothing.
func (i *injection) keepOrder() {
	i.keepPorts()
	was, is := &i.original.Spec, &i.pod.Spec
	byName := func(c corev1.Container) string { return c.Name }
	is.Containers = keep(is.Containers, was.Containers, byName)
	is.InitContainers = keep(is.InitContainers, was.InitContainers, byName)
	is.Volumes = keep(is.Volumes, was.Volumes, func(v corev1.Volume) string { return v.Name })
	is.ImagePullSecrets = keep(is.ImagePullSecrets, was.ImagePullSecrets,
		func(s corev1.LocalObjectReference) string { return s.Name })
	for _, l := range []struct{ is, was []corev1.Container }{{is.Containers, was.Containers},
		{is.InitContainers, was.InitContainers}} {
		for n := range l.is {
			if before := find(l.was, l.is[n].Name); before != nil {
				keepContainer(&l.is[n], before)
			}
		}
	}
}

// keepContainer restores the order of the lists of one container.
func keepContainer(is, was *corev1.Container) {
	is.Env = keep(is.Env, was.Env, func(v corev1.EnvVar) string { return v.Name })
	is.VolumeMounts = keep(is.VolumeMounts, was.VolumeMounts, func(m corev1.VolumeMount) string { return m.MountPath })
	is.Ports = keep(is.Ports, was.Ports,
		func(p corev1.ContainerPort) string { return fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol) })
}

// keep sorts a list as an earlier one; what is new goes to the end.
func keep[T any](is, was []T, key func(T) string) []T {
	place := make(map[string]int, len(was))
	for n, e := range was {
		if _, ok := place[key(e)]; !ok {
			place[key(e)] = n
		}
	}
	at := func(e T) int {
		if n, ok := place[key(e)]; ok {
			return n
		}
		return len(was)
	}
	slices.SortStableFunc(is, func(a, b T) int { return at(a) - at(b) })
	return is
}
