package ads

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/encodecache"
)

// Field numbers of envoy.config.route.v3.RouteConfiguration.
const (
	routeName             = 1
	routeValidateClusters = 7
)

// empty is the route configuration that a sidecar gets for a name that does not exist, as istiod gives it: the name,
// and validate_clusters false. Without it a listener that names it would wait. The name is any bytes that a client
// sent.
func (b *Book) empty(name string) *encodecache.Entry {
	e, ok := b.empties[name]
	if !ok {
		msg := protowire.AppendTag(nil, routeName, protowire.BytesType)
		msg = protowire.AppendString(msg, name)
		msg = protowire.AppendTag(msg, routeValidateClusters, protowire.BytesType)
		msg = protowire.AppendBytes(msg, nil)
		e = encodecache.NewLeaf(RouteURL, name, encodecache.NewFragment(msg))
		b.empties[name] = e
	}
	return e
}
