package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// namedPorts are the ports of a router's workload that a Service of its own means by name, as Facts holds them.
func namedPorts(n *snapshot.Snapshot, w *value.Workload) string {
	if len(w.NamedPorts) == 0 {
		return ""
	}
	read := map[string]int{}
	for svc := range n.ServicesIn(w.Namespace) {
		if svc.Registry != value.RegistryKubernetes || len(svc.Selector) == 0 || !w.Labels.Contains(svc.Selector) {
			continue
		}
		for _, p := range svc.Ports {
			if number, ok := w.NamedPorts[p.TargetName]; ok && p.TargetName != "" {
				read[p.TargetName] = number
			}
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(read)) {
		out = append(out, name+"="+strconv.Itoa(read[name]))
	}
	return strings.Join(out, " ")
}

// namedPort is the number of a port of the workload; 0 if it has none of that name.
func (f Facts) namedPort(name string) int {
	for p := range strings.FieldsSeq(f.NamedPorts) {
		if number, ok := strings.CutPrefix(p, name+"="); ok {
			n, _ := strconv.Atoi(number)
			return n
		}
	}
	return 0
}
