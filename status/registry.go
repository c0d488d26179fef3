package status

import (
	"net/http"
	"strings"
	"unique"

	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/snapshot/value"
)

// registryService is a service in the JSON form of istiod's registryz page, which Kiali reads.
type registryService struct {
	Attributes     registryAttributes `json:"Attributes"`
	Ports          []registryPort     `json:"ports,omitempty"`
	CreationTime   int64              `json:"creationTimeSeconds,omitempty"`
	Hostname       string             `json:"hostname"`
	DefaultAddress string             `json:"defaultAddress,omitempty"`
	Addresses      []string           `json:"addresses,omitempty"`
	Resolution     int                `json:"Resolution"`
	MeshExternal   bool               `json:"MeshExternal"`
}

type registryAttributes struct {
	ServiceRegistry string            `json:"ServiceRegistry"`
	Name            string            `json:"Name"`
	Namespace       string            `json:"Namespace"`
	Labels          map[string]string `json:"Labels,omitempty"`
	ExportTo        []string          `json:"ExportTo,omitempty"`
	LabelSelectors  map[string]string `json:"LabelSelectors,omitempty"`
}

type registryPort struct {
	Name     string `json:"name,omitempty"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

// Registry returns the page with all services of a View: /debug/registryz.
func Registry(view func() *snapshot.View) Page {
	return func(*http.Request) (any, error) {
		out := []registryService{}
		for svc := range view().Snapshot.Services() {
			out = append(out, registryOf(svc))
		}
		return out, nil
	}
}

func registryOf(svc *value.Service) registryService {
	r := registryService{
		Attributes: registryAttributes{ServiceRegistry: "Kubernetes", Name: svc.Name, Namespace: svc.Namespace,
			Labels:   svc.Labels,
			ExportTo: svc.Export.Namespaces, LabelSelectors: svc.Selector},
		CreationTime: svc.Created, Hostname: svc.Host, Addresses: svc.Addresses, Resolution: int(svc.Resolution),
		MeshExternal: svc.External,
	}
	if svc.Registry == value.RegistryExternal {
		r.Attributes.ServiceRegistry = "External"
	}
	if svc.Export.Public {
		r.Attributes.ExportTo = []string{"*"}
	}
	if len(svc.Addresses) > 0 {
		r.DefaultAddress = svc.Addresses[0]
	}
	for _, p := range svc.Ports {
		r.Ports = append(r.Ports, registryPort{p.Name, p.Number, string(p.Protocol)})
	}
	return r
}

// endpointPort has the endpoints of one port of a service in the JSON form of istiod's endpointz page.
type endpointPort struct {
	Service   string     `json:"svc"`
	Endpoints []endpoint `json:"ep"`
}

type endpoint struct {
	Addresses      []string          `json:"addresses"`
	Port           uint32            `json:"endpointPort"`
	Health         string            `json:"healthStatus"`
	ServiceAccount string            `json:"serviceAccount,omitempty"`
	Workload       string            `json:"workloadName,omitempty"`
	Namespace      string            `json:"namespace,omitempty"`
	Locality       string            `json:"locality,omitempty"`
	TLSMode        string            `json:"tlsMode,omitempty"`
	Weight         uint32            `json:"lbWeight,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
}

// Endpoints returns the page with all endpoints of a View, by service and port: /debug/endpointz. The parameter "host"
// restricts it to one host.
func Endpoints(view func() *snapshot.View) Page {
	return func(r *http.Request) (any, error) {
		v, host := view(), strings.ToLower(r.FormValue("host"))
		out := []endpointPort{}
		for svc := range v.Snapshot.Services() {
			set := v.Endpoints.Set(svc.ServiceKey)
			if set == nil || host != "" && host != svc.Host {
				continue
			}
			for _, p := range svc.Ports {
				out = append(out, endpointPort{svc.Host + ":" + p.Name, endpointsOf(set, p.Name)})
			}
		}
		return out, nil
	}
}

func endpointsOf(set *snapshot.EndpointSet, port string) (out []endpoint) {
	for _, e := range set.Endpoints {
		for _, p := range e.Ports {
			if p.Name != port {
				continue
			}
			id := identityOf(e)
			out = append(out, endpoint{e.Addresses, p.Port, e.Health.String(), id.ServiceAccount, id.Workload,
				id.Namespace, e.Locality.String(), id.TLSMode, e.Weight, e.Labels})
		}
	}
	return out
}

// identityOf returns the identity of an endpoint's workload; zero if it is unknown.
func identityOf(e *value.Endpoint) (id value.Identity) {
	if e.Identity != (unique.Handle[value.Identity]{}) {
		id = e.Identity.Value()
	}
	return id
}
