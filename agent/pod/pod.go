package pod

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	meshconfig "istio.io/api/mesh/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/pilotd/pilotd/proxyconfig"
)

// Kind is what a proxy is for: the first part of its node id.
type Kind string

// The kinds of proxies.
const (
	Sidecar Kind = "sidecar"
	Router  Kind = "router"
)

// Paths of the pod's files relative to the working directory, which is the root directory in an image.
const (
	labelsFile      = "etc/istio/pod/labels"
	annotationsFile = "etc/istio/pod/annotations"
	meshFile        = "etc/istio/config/mesh"
)

// Names of annotations that the agent reads.
const (
	annotationConfig   = "proxy.istio.io/config"
	annotationRevision = "istio.io/rev"
	hashLabel          = "pod-template-hash"
)

// Source is the input of Read.
type Source struct {
	Kind Kind
	// Files are the pod's files, with paths relative to the working directory.
	Files fs.FS
	Env   Env
	// Domain is the pod's DNS domain, such as shop.svc.cluster.local. Empty means that of its namespace.
	Domain string
	// Addresses are the addresses of the pod's interfaces.
	Addresses []netip.Addr
}

// Pod is what the pod says about itself and its proxy.
type Pod struct {
	Kind                            Kind
	Name, Namespace, ServiceAccount string
	// Domain is the pod's DNS domain, TrustDomain the trust domain of its identity.
	Domain, TrustDomain string
	// IPs are the pod's addresses. The first one is part of its node id.
	IPs                 []netip.Addr
	Labels, Annotations map[string]string
	Config              *meshconfig.ProxyConfig
	Env                 Env
	// Warnings are settings that have no effect.
	Warnings []string
}

// Read reads a Pod.
func Read(s Source) (*Pod, error) {
	p := &Pod{Kind: s.Kind, Env: s.Env,
		Name: s.Env.Text("POD_NAME", ""), Namespace: s.Env.Text("POD_NAMESPACE", ""),
		ServiceAccount: s.Env.Text("SERVICE_ACCOUNT", ""), TrustDomain: s.Env.Text("TRUST_DOMAIN", "cluster.local")}
	if p.Kind != Sidecar && p.Kind != Router {
		return nil, fmt.Errorf("a proxy is %s or %s, not %q", Sidecar, Router, s.Kind)
	}
	for name, v := range map[string]string{"POD_NAME": p.Name, "POD_NAMESPACE": p.Namespace} {
		if v == "" || strings.ContainsAny(v, "~/ ") {
			return nil, fmt.Errorf("environment variable %s=%q: want the name that the pod has there", name, v)
		}
	}
	if name := p.SecretSocket(); strings.Contains(name, "/") || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("environment variable WORKLOAD_IDENTITY_SOCKET_FILE=%q: want the name of a file", name)
	}
	p.Domain = cmp.Or(s.Domain, p.Namespace+".svc.cluster.local")
	var err error
	if p.Labels, err = downward(s.Files, labelsFile); err != nil {
		return nil, err
	}
	delete(p.Labels, hashLabel)
	if p.Annotations, err = downward(s.Files, annotationsFile); err != nil {
		return nil, err
	}
	if p.IPs, err = addresses(s); err != nil {
		return nil, err
	}
	if err := p.readConfig(s); err != nil {
		return nil, err
	}
	p.Warnings = append(p.Warnings, p.notServed()...)
	return p, p.Env.Err()
}

// IP returns the address that is part of the node id.
func (p *Pod) IP() netip.Addr { return p.IPs[0] }

// IPv6Only reports whether all addresses of the pod are IPv6.
func (p *Pod) IPv6Only() bool {
	return !slices.ContainsFunc(p.IPs, func(a netip.Addr) bool { return a.Is4() })
}

// DualStack reports whether the pod has addresses of both families.
func (p *Pod) DualStack() bool {
	return !p.IPv6Only() && slices.ContainsFunc(p.IPs, func(a netip.Addr) bool { return a.Is6() })
}

// addresses returns the pod's addresses, with the one that the environment names first.
func addresses(s Source) (out []netip.Addr, err error) {
	if text := s.Env.Text("INSTANCE_IP", ""); text != "" {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("environment variable INSTANCE_IP=%q: want an address", text)
		}
		out = append(out, a)
	}
	for _, a := range s.Addresses {
		if a = a.Unmap(); a.IsGlobalUnicast() && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the pod has no address: want one on an interface, or in environment variable INSTANCE_IP")
	}
	return out, nil
}

// downward parses a file of the downward API, with lines name="value". It returns nothing for a file that does not
// exist.
func downward(files fs.FS, name string) (map[string]string, error) {
	text, ok, err := readFile(files, name)
	if !ok || err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(text) {
		key, quoted, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("%s: %.64q: want a value in quotes, got %.64q", name, key, quoted)
		}
		out[key] = value
	}
	return out, nil
}

// readFile returns the text of a file; ok reports whether it exists.
func readFile(files fs.FS, name string) (text string, ok bool, err error) {
	data, err := fs.ReadFile(files, name)
	switch {
	case err == nil:
		return string(data), true, nil
	case isMissing(err):
		return "", false, nil
	}
	return "", false, err
}

// readConfig merges the default ProxyConfig with the mesh's settings, the environment's and the annotation's, in this
// order.
func (p *Pod) readConfig(s Source) error {
	p.Config = proxyconfig.Default()
	text, ok, err := readFile(s.Files, meshFile)
	if err != nil {
		return err
	}
	if ok {
		var mesh struct {
			DefaultConfig map[string]any `json:"defaultConfig"`
		}
		if err := yaml.Unmarshal([]byte(text), &mesh); err != nil {
			return fmt.Errorf("%s: want a MeshConfig: %s", meshFile, strings.Join(strings.Fields(err.Error()), " "))
		}
		lower, err := yaml.Marshal(mesh.DefaultConfig)
		if err != nil {
			return err
		}
		if err := p.lay(meshFile, string(lower)); err != nil {
			return err
		}
	}
	if err := p.lay("environment variable PROXY_CONFIG", s.Env.Text("PROXY_CONFIG", "")); err != nil {
		return err
	}
	if err := p.lay("annotation "+annotationConfig, p.Annotations[annotationConfig]); err != nil {
		return err
	}
	return p.checkConfig()
}

func (p *Pod) lay(from, text string) error {
	unknown, err := proxyconfig.LayKnown(p.Config, text)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for _, name := range unknown {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: ProxyConfig has no field %s", from, name))
	}
	return nil
}

func (p *Pod) checkConfig() error {
	c := p.Config
	if c.DiscoveryAddress == "" || c.ConfigPath == "" || c.BinaryPath == "" {
		return fmt.Errorf("ProxyConfig: discoveryAddress, configPath and binaryPath: want a value")
	}
	for name, n := range map[string]int32{"proxyAdminPort": c.ProxyAdminPort, "statusPort": c.StatusPort,
		"concurrency": c.Concurrency.GetValue()} {
		if n < 0 || n > 65535 {
			return fmt.Errorf("ProxyConfig: %s: want 0 to 65535, got %d", name, n)
		}
	}
	for name, d := range map[string]interface{ CheckValid() error }{"drainDuration": c.DrainDuration,
		"terminationDrainDuration": c.TerminationDrainDuration} {
		if err := d.CheckValid(); err != nil && !isNil(d) {
			return fmt.Errorf("ProxyConfig: %s: %w", name, err)
		}
	}
	return nil
}

// isNil reports whether a message is nil, behind its interface.
func isNil(m any) bool {
	pm, ok := m.(proto.Message)
	return ok && !pm.ProtoReflect().IsValid()
}
