package ingest

import (
	"testing"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// TestMeshOverDefaults: what the text names replaces the default; messages are merged, lists replaced, providers merged
// by name.
func TestMeshOverDefaults(t *testing.T) {
	m, p := parseMesh(`
trustDomain: example
connectTimeout: 3s
enableTracing: false
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
localityLbSetting: {failover: [{from: a, to: b}]}
defaultServiceExportTo: ["."]
defaultConfig: {holdApplicationUntilProxyStarts: true, proxyMetadata: {A: b}}
extensionProviders: [{name: envoy, envoyFileAccessLog: {path: /dev/null}}, {name: own, prometheus: {}}]
`)
	if p != nil {
		t.Fatal(*p)
	}
	for what, ok := range map[string]bool{
		"named scalar":  m.GetTrustDomain() == "example",
		"named message": m.GetConnectTimeout().AsDuration() == 3*time.Second,
		"named zero":    !m.GetEnableTracing(),
		"named enum":    m.GetOutboundTrafficPolicy().GetMode() == meshconfig.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY,
		"merged message": m.GetLocalityLbSetting().GetEnabled().GetValue() &&
			len(m.GetLocalityLbSetting().GetFailover()) == 1,
		"replaced list": len(m.GetDefaultServiceExportTo()) == 1 && m.GetDefaultServiceExportTo()[0] == ".",
		"merged proxy": m.GetDefaultConfig().GetHoldApplicationUntilProxyStarts().GetValue() &&
			m.GetDefaultConfig().GetStatusPort() == 15020,
		"provider by name": len(m.GetExtensionProviders()) == 4 &&
			m.GetExtensionProviders()[2].GetEnvoyFileAccessLog().GetPath() == "/dev/null",
		"default not mentioned": m.GetRootNamespace() == "istio-system" && m.GetEnableAutoMtls().GetValue() &&
			m.GetDefaultHttpRetryPolicy() == nil,
	} {
		if !ok {
			t.Errorf("%s: %v", what, m)
		}
	}
}

// TestMeshRefused names the field.
func TestMeshRefused(t *testing.T) {
	for text, field := range map[string]string{
		"nonsense: 1":                            "nonsense",
		"defaultConfig: {x: 1}":                  "defaultConfig.x",
		"extensionProviders: [{nam: a}]":         "extensionProviders[0].nam",
		"accessLogEncoding: XML":                 "accessLogEncoding",
		"connectTimeout: 0s":                     "connectTimeout",
		"proxyListenPort: 70000":                 "proxyListenPort",
		"rootNamespace: ''":                      "rootNamespace",
		"connectTimeout: soon":                   "",
		"a: [":                                   "",
		"defaultHttpRetryPolicy: {attempts: -1}": "defaultHttpRetryPolicy.attempts",
	} {
		if _, p := parseMesh(text); p == nil || p.field != field {
			t.Errorf("%q: %v, want field %q", text, p, field)
		}
	}
}
