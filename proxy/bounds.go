package proxy

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Bounds of what a client says about itself, because it is kept for as long as the client is connected. Names of
// Kubernetes objects have at most 253 bytes.
const (
	maxID = 1 << 10
	// maxText bounds each part of the locality, and each text of the metadata.
	maxText = 256
	// maxAddresses bounds INSTANCE_IPS, which has all addresses of the pod.
	maxAddresses = 4 << 10
	// maxLabels bounds the number of labels, maxLabelBytes the size of all of them together.
	maxLabels     = 256
	maxLabelBytes = 32 << 10
)

// checkBounds refuses a node that is larger than its bounds.
func checkBounds(n *corev3.Node) error {
	within := func(what string, size, limit int) error {
		if size <= limit {
			return nil
		}
		return fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrNode, what, size, limit)
	}
	if err := within("id", len(n.GetId()), maxID); err != nil {
		return err
	}
	l := n.GetLocality()
	for _, part := range []struct{ what, text string }{{"locality.region", l.GetRegion()},
		{"locality.zone", l.GetZone()}, {"locality.sub_zone", l.GetSubZone()}} {
		if err := within(part.what, len(part.text), maxText); err != nil {
			return err
		}
	}
	md := n.GetMetadata().GetFields()
	for k := range metadataKey(numKeys) {
		limit := maxText
		if k == keyAddresses {
			limit = maxAddresses
		}
		if err := within("metadata "+k.String(), len(text(md, k)), limit); err != nil {
			return err
		}
	}
	all := md[keyLabels.String()].GetStructValue().GetFields()
	if len(all) > maxLabels {
		return fmt.Errorf("%w: metadata LABELS has %d labels, the limit is %d", ErrNode, len(all), maxLabels)
	}
	size := 0
	for k, v := range all {
		size += len(k) + len(v.GetStringValue())
	}
	return within("metadata LABELS", size, maxLabelBytes)
}
