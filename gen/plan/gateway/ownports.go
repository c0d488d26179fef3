package gateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/gen/plan/scope"
	"github.com/pilotd/pilotd/gen/plan/workload"
	"github.com/pilotd/pilotd/snapshot/value"
)

// untranslatedLabel on a service says that Gateways name the router's own ports, not the service's.
const untranslatedLabel = "experimental.istio.io/disable-gateway-port-translation"

// OwnPorts returns the ports of the services that a router serves, Kubernetes Services and ServiceEntries alike, for
// which it listens at another one: "number=own" by spaces, as Facts holds them. Of several services with one port the
// oldest decides.
func OwnPorts(w workload.Workload) string {
	served := w.Served()
	slices.SortStableFunc(served, func(a, b workload.Target) int { return value.OlderService(a.Service, b.Service) })
	decided := map[int]bool{}
	var out []string
	for _, t := range served {
		number := t.Port.Number
		if _, ok := t.Service.Labels[untranslatedLabel]; ok || decided[number] {
			continue
		}
		decided[number] = true
		if t.Number != number {
			out = append(out, fmt.Sprintf("%d=%d", number, t.Number))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// ownPort returns the port at which a router listens for calls to a port of its services; that port itself if they say
// no other.
func ownPort(f *scope.Facts, number int) int {
	for p := range strings.FieldsSeq(f.OwnPorts) {
		if own, ok := strings.CutPrefix(p, strconv.Itoa(number)+"="); ok {
			n, _ := strconv.Atoi(own)
			return n
		}
	}
	return number
}
