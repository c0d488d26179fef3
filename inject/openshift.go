package inject

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotd/pilotd/inject/overlay"
)

// Annotations of OpenShift's namespaces: as whom pods may run there.
const (
	uidRange = "openshift.io/sa.scc.uid-range"
	gidRange = "openshift.io/sa.scc.supplemental-groups"
)

// defaultID is the user and the group of proxies elsewhere.
const defaultID = 1337

// proxyIDs returns the user and the group that a namespace's proxies run as: the last of its ranges, for applications
// get the first.
func proxyIDs(namespace map[string]string) (uid, gid int64, err error) {
	uid, gid = defaultID, defaultID
	if text, ok := namespace[uidRange]; ok {
		if uid, err = lastOf(text); err != nil {
			return 0, 0, fmt.Errorf("annotation %s of the namespace: %w", uidRange, err)
		}
	}
	name, text := gidRange, namespace[gidRange]
	if text == "" {
		name, text = uidRange, namespace[uidRange] // as OpenShift gives groups to namespaces without a range of their own
	}
	if text != "" {
		head, _, _ := strings.Cut(text, ",")
		if gid, err = lastOf(head); err != nil {
			return 0, 0, fmt.Errorf("annotation %s of the namespace: %w", name, err)
		}
	}
	return uid, gid, nil
}

// forgetAssignedUser removes from the user's own proxy container the user and the group that OpenShift has given to all
// containers of the pod: traffic of a proxy that runs as its application is captured for ever.
func forgetAssignedUser(pod *corev1.Pod, namespace map[string]string) {
	proxy := proxyOf(pod)
	if _, assigns := namespace[uidRange]; !assigns || proxy == nil || proxy.SecurityContext == nil {
		return
	}
	var own, app int64
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.SecurityContext == nil || c.SecurityContext.RunAsUser == nil {
			continue
		}
		if c.Name == overlay.ProxyContainer {
			own = *c.SecurityContext.RunAsUser
		} else {
			app = *c.SecurityContext.RunAsUser
		}
	}
	if own == app {
		proxy.SecurityContext.RunAsUser, proxy.SecurityContext.RunAsGroup = nil, nil
	}
}

// lastOf returns the last number of a range, which is written as its first one and its size, or as its first and its
// last.
func lastOf(text string) (int64, error) {
	bad := fmt.Errorf("%q: expected a range such as 1000/10000 or 1000-10999", text)
	head, tail, isSize := strings.Cut(strings.TrimSpace(text), "/")
	if !isSize {
		var ok bool
		if head, tail, ok = strings.Cut(strings.TrimSpace(text), "-"); !ok {
			return 0, bad
		}
	}
	from, err := strconv.ParseUint(head, 10, 31)
	if err != nil {
		return 0, bad
	}
	to, err := strconv.ParseUint(tail, 10, 31)
	if err != nil {
		return 0, bad
	}
	if isSize {
		to = from + to - 1
	}
	if to < from {
		return 0, bad
	}
	return int64(to), nil
}
