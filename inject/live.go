package inject

import (
	"sync"
	"sync/atomic"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// ConfigMapName returns the name of the injector's ConfigMap of a revision.
func ConfigMapName(revision string) string {
	if revision == "" || revision == "default" {
		return "istio-sidecar-injector"
	}
	return "istio-sidecar-injector-" + revision
}

// Live has the Injector of the settings that hold now. Settings that cannot be read change nothing: the last good ones
// stay. Safe for concurrent use.
type Live struct {
	current atomic.Pointer[Injector]

	mu sync.Mutex
	// Guarded by mu.
	settings   Settings
	configured bool // the ConfigMap is in settings
}

// NewLive returns a Live that has no Injector until it is told of a ConfigMap and of a mesh configuration. What these
// two do not say is in settings.
func NewLive(settings Settings) *Live { return &Live{settings: settings} }

// Injector returns the Injector that holds now, or nil. It never blocks.
func (l *Live) Injector() *Injector { return l.current.Load() }

// SetConfigMap takes the data of the injector's ConfigMap.
func (l *Live) SetConfigMap(data map[string]string) error {
	config, err := ReadConfig(data["config"])
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.settings
	next.Config, next.Values = config, data["values"]
	return l.replace(next, true)
}

// SetMesh takes the mesh configuration.
func (l *Live) SetMesh(mesh *meshconfig.MeshConfig) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.settings
	next.Mesh = mesh
	return l.replace(next, l.configured)
}

// SetProxyConfigs takes the ProxyConfig objects of the mesh.
func (l *Live) SetProxyConfigs(all []ProxyConfig) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.settings
	next.ProxyConfigs = all
	return l.replace(next, l.configured)
}

// replace takes settings if an Injector can be made of them; the caller holds mu.
func (l *Live) replace(next Settings, configured bool) error {
	in, err := New(next)
	if err != nil {
		return err
	}
	l.settings, l.configured = next, configured
	if configured && next.Mesh != nil {
		l.current.Store(in)
	}
	return nil
}
