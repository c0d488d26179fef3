package overlay

import (
	"cmp"
	"strings"

	"istio.io/api/annotation"
	"istio.io/api/label"
)

const (
	defaultContainer     = "kubectl.kubernetes.io/default-container"
	defaultLogsContainer = "kubectl.kubernetes.io/default-logs-container"
)

// canonical returns the labels that name the workload's canonical service and its revision.
func (d *Data) canonical() map[string]string {
	l := d.ObjectMeta.Labels
	name := cmp.Or(l[label.ServiceCanonicalName.Name], l["app.kubernetes.io/name"], l["app"], d.DeploymentMeta.Name)
	return map[string]string{
		label.ServiceCanonicalName.Name: strings.TrimSuffix(name[:min(63, len(name))], "-"),
		label.ServiceCanonicalRevision.Name: cmp.Or(l[label.ServiceCanonicalRevision.Name],
			l["app.kubernetes.io/version"], l["version"], "latest"),
	}
}

// annotations returns those that say which revision has injected the pod, and which container kubectl means where none
// is named.
func (d *Data) annotations() map[string]string {
	out := map[string]string{annotation.IoIstioRev.Name: cmp.Or(d.Revision, "default")}
	if apps := d.applications(); len(apps) > 0 {
		for _, name := range []string{defaultLogsContainer, defaultContainer} {
			if !d.has(name) {
				out[name] = apps[0]
			}
		}
	}
	return out
}
