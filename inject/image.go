package inject

import (
	"cmp"
	"strings"

	"istio.io/api/annotation"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"

	"github.com/pilotd/pilotd/inject/overlay"
)

// proxyImage returns the proxy's image: hub, name and tag of the values, and the image type where somebody asks for
// one.
func proxyImage(chart *overlay.Values, image *networking.ProxyImage, annotations map[string]string) string {
	kind := image.GetImageType()
	if k, ok := annotations[annotation.SidecarProxyImageType.Name]; ok {
		kind = k
	}
	g := &chart.Global
	return g.Hub + "/" + cmp.Or(g.Proxy.Image, "proxyv2") + ":" + tagOf(string(g.Tag), kind)
}

// tagOf returns a tag with an image type, which replaces the one that is there.
func tagOf(tag, kind string) string {
	if kind == "" {
		return tag
	}
	for _, known := range []string{"-distroless", "-debug"} {
		if t, ok := strings.CutSuffix(tag, known); ok {
			tag = t
			break
		}
	}
	if kind == "default" {
		return tag
	}
	return tag + "-" + kind
}

// inboundMode returns where inbound traffic goes, in the words of templates.
func inboundMode(mesh *meshconfig.MeshConfig) string {
	if mesh.GetInboundTrafficPolicy().GetMode() == meshconfig.MeshConfig_InboundTrafficPolicy_LOCALHOST {
		return "localhost"
	}
	return "passthrough"
}
