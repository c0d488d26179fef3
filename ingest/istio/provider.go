package istio

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotd/pilotd/snapshot/value"
)

type (
	httpProvider = meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider
	checked      = meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationRequestBody
	grpcProvider = meshconfig.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider
)

// authorizationProviders returns those extension providers that decide about authorization. An invalid one gets a
// Problem instead of an error, so that the rest of the mesh configuration stays in force.
func authorizationProviders(in []*meshconfig.MeshConfig_ExtensionProvider) (out []*value.AuthorizationProvider) {
	for _, p := range in {
		switch {
		case p.GetEnvoyExtAuthzHttp() != nil:
			out = append(out, askedByHTTP(p.GetName(), p.GetEnvoyExtAuthzHttp()))
		case p.GetEnvoyExtAuthzGrpc() != nil:
			out = append(out, askedByGRPC(p.GetName(), p.GetEnvoyExtAuthzGrpc()))
		}
	}
	return out
}

func askedByGRPC(name string, in *grpcProvider) *value.AuthorizationProvider {
	out := &value.AuthorizationProvider{Name: name, GRPC: true, Timeout: duration(in.GetTimeout()),
		FailOpen: in.GetFailOpen(), ClearRouteCache: in.GetClearRouteCache(),
		Body: optional(in.GetIncludeRequestBodyInCheck(), checkedBody)}
	locateProvider(out, in.GetService(), in.GetPort(), in.GetStatusOnError())
	return out
}

func askedByHTTP(name string, in *httpProvider) *value.AuthorizationProvider {
	out := &value.AuthorizationProvider{Name: name, PathPrefix: in.GetPathPrefix(),
		RequestHeaders: list(in.GetIncludeRequestHeadersInCheck()), Upstream: list(in.GetHeadersToUpstreamOnAllow()),
		Denied: list(in.GetHeadersToDownstreamOnDeny()), Allowed: list(in.GetHeadersToDownstreamOnAllow()),
		Timeout: duration(in.GetTimeout()), FailOpen: in.GetFailOpen(), ClearRouteCache: in.GetClearRouteCache(),
		Body: optional(in.GetIncludeRequestBodyInCheck(), checkedBody)}
	if out.RequestHeaders == nil {
		//lint:ignore SA1019 the old name of the same field
		out.RequestHeaders = list(in.GetIncludeHeadersInCheck())
	}
	added := in.GetIncludeAdditionalHeadersInCheck()
	for _, k := range slices.Sorted(maps.Keys(added)) {
		out.Added = append(out.Added, value.Header{Name: k, Value: added[k]})
	}
	locateProvider(out, in.GetService(), in.GetPort(), in.GetStatusOnError())
	if out.PathPrefix != "" && !strings.HasPrefix(out.PathPrefix, "/") {
		out.Problem = fmt.Sprintf("pathPrefix %q does not begin with a slash", out.PathPrefix)
	}
	return out
}

func checkedBody(in *checked) value.CheckedBody {
	return value.CheckedBody{Most: in.GetMaxRequestBytes(), Partial: in.GetAllowPartialMessage(),
		Bytes: in.GetPackAsBytes()}
}

// locateProvider sets the address of a provider's server and the response of clients that cannot reach it, or the
// provider's Problem.
func locateProvider(out *value.AuthorizationProvider, service string, port uint32, statusOnError string) {
	namespace, host, named := strings.Cut(service, "/")
	if !named {
		namespace, host = "", service
	}
	out.Namespace, out.Host, out.Port = namespace, strings.ToLower(host), int(port)
	status, err := strconv.ParseUint(statusOnError, 10, 16)
	_, known := typepb.StatusCode_name[int32(status)]
	if statusOnError != "" {
		out.StatusOnError = uint32(status)
	}
	switch {
	case host == "" || named && namespace == "":
		out.Problem = fmt.Sprintf("service %q is no host and no namespace/host", service)
	case port == 0 || port > 65535:
		out.Problem = fmt.Sprintf("port %d is none from 1 to 65535", port)
	case statusOnError != "" && (err != nil || !known || status == 0):
		out.Problem = fmt.Sprintf("statusOnError %q is no status that Envoy can answer with", statusOnError)
	case out.Body != nil && out.Body.Most == 0:
		out.Problem = "includeRequestBodyInCheck.maxRequestBytes is missing"
	case out.Timeout.Set && out.Timeout.Seconds <= 0 && out.Timeout.Nanos <= 0:
		out.Problem = "timeout is not more than 0"
	}
}
