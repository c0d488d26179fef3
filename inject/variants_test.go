package inject

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// TestSettings has what each setting that the recorded pods leave alone makes of a pod.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name, values string
		change       func(*Settings, *Request)
		want, not    []string
	}{
		{name: "node agent", values: "pilot: {cni: {enabled: true, provider: multus}}",
			want: []string{"k8s.v1.cni.cncf.io/networks: default/istio-cni", "name: istio-validation", "--run-validation",
				"--skip-rule-apply", `traffic.sidecar.istio.io/excludeInboundPorts: "15020"`,
				"sidecar.istio.io/interceptionMode: REDIRECT", "traffic.sidecar.istio.io/includeOutboundIPRanges: '*'"},
			not: []string{"NET_ADMIN", "name: istio-init"}},
		{name: "native by setting", change: func(s *Settings, _ *Request) { s.NativeSidecars = true },
			want: []string{"restartPolicy: Always", "- drain", `"initContainers":["istio-init","istio-proxy"]`}},
		{name: "hold", values: "global: {proxy: {holdApplicationUntilProxyStarts: true}}",
			want: []string{"postStart:", "- wait"}},
		{name: "capture", values: `global: {nativeNftables: true, logAsJson: true, proxy_init: {forceApplyIptables: true},
  proxy: {includeOutboundPorts: 9, excludeOutboundPorts: "8"}}`,
			want: []string{"- --native-nftables", "- --log_as_json", "- --force-apply", "- -q\n    - \"9\"", "- -o\n    - \"8\""}},
		{name: "certificates", values: `global: {pilotCertProvider: kubernetes, mountMtlsCerts: true, caAddress: "ca.x:1",
  caName: GkeWorkloadCertificate}`,
			want: []string{"secretName: istio.default", "mountPath: /etc/certs/", "value: ca.x:1",
				"driver: workloadcertificates.security.cloud.google.com"}, not: []string{"istio-ca-root-cert"}},
		{name: "trust bundle", values: "pilot: {env: {ENABLE_CLUSTER_TRUST_BUNDLE_API: true}}",
			want: []string{"name: istio.io:istiod-ca:root-cert"}, not: []string{"istio-ca-root-cert"}},
		{name: "proxy", values: `global: {imagePullPolicy: Always, imagePullSecrets: [a, b], meshID: m, tag: 1.2-debug,
  sts: {servicePort: 7}, proxy: {privileged: true, seccompProfile: {type: RuntimeDefault}, outlierLogPath: /dev/stdout,
  startupProbe: {enabled: false}, resources: {}, lifecycle: {preStop: {exec: {command: [x]}}}}}`,
			change: func(_ *Settings, r *Request) { r.Pod.Annotations["sidecar.istio.io/proxyImageType"] = "distroless" },
			want: []string{"imagePullPolicy: Always", "- name: a\n  - name: b", "value: m", "proxyv2:1.2-distroless",
				"--stsPort=7", "privileged: true", "type: RuntimeDefault", "--outlierLogPath=/dev/stdout", "- x"},
			not: []string{"startupProbe", "limits:\n"}},
		{name: "revision", values: "revision: canary", change: func(s *Settings, _ *Request) { s.Revision = "canary" },
			want: []string{"istiod-canary.istio-system.svc:15012", "istio.io/rev: canary", `"revision":"canary"`}},
		{name: "mesh", change: func(s *Settings, _ *Request) {
			s.Mesh.ProxyListenPort, s.Mesh.DefaultConfig.StatusPort = 16001, 16020
			s.Mesh.InboundTrafficPolicy.Mode = meshconfig.MeshConfig_InboundTrafficPolicy_LOCALHOST
			s.Mesh.DefaultConfig.InterceptionMode = meshconfig.ProxyConfig_TPROXY
			s.CompliancePolicy = "fips-140-2"
		}, want: []string{"- \"16001\"", `prometheus.io/port: "16020"`, "REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION",
			"- TPROXY", "value: TPROXY", "runAsUser: 0", "value: fips-140-2", `{"interceptionMode":"TPROXY","statusPort":16020}`}},
		{name: "path", change: func(_ *Settings, r *Request) { r.Env = PathEnv("/inject/cluster/c1/net/n1") },
			want: []string{"topology.istio.io/network: n1",
				"- name: ISTIO_META_CLUSTER_ID\n      value: c1\n    - name: ISTIO_META_NETWORK\n      value: n1\n    image"}},
		{name: "OpenShift", change: func(_ *Settings, r *Request) {
			r.NamespaceAnnotations = map[string]string{uidRange: "1000700000/10000", gidRange: "2000-2999,7/1"}
		}, want: []string{"runAsUser: 1000709999", "runAsGroup: 2999", `- "1000709999"`}, not: []string{"1337"}},
		{name: "OpenShift's user for all containers", change: func(_ *Settings, r *Request) {
			r.NamespaceAnnotations = map[string]string{uidRange: "1000700000/10000"}
			as := func() *corev1.SecurityContext { return &corev1.SecurityContext{RunAsUser: new(int64(1000700000))} }
			r.Pod.Spec.Containers[0].SecurityContext = as()
			r.Pod.Spec.Containers = append(r.Pod.Spec.Containers,
				corev1.Container{Name: "istio-proxy", Image: "auto", SecurityContext: as()})
		}, want: []string{"runAsUser: 1000709999", "runAsGroup: 1000709999", `- "1000709999"`}, not: []string{"1337"}},
		{name: "a user of its own on OpenShift", change: func(_ *Settings, r *Request) {
			r.NamespaceAnnotations = map[string]string{uidRange: "1000700000/10000"}
			r.Pod.Spec.Containers = append(r.Pod.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "auto",
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(1000700000))}})
		}, want: []string{"runAsUser: 1000700000", `- "1000700000"`}},
		{name: "dual stack", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["proxy.istio.io/config"] = "proxyMetadata: {ISTIO_DUAL_STACK: 'true'}"
		}, want: []string{"- name: ISTIO_DUAL_STACK\n      value: \"true\""}},
		{name: "HBONE and tracing of rules", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["proxy.istio.io/config"] =
				"proxyMetadata: {ISTIO_META_ENABLE_HBONE: 'true', IPTABLES_TRACE_LOGGING: 'true'}"
		}, want: []string{"networking.istio.io/tunnel: http", "privileged: true"}},
		{name: "datadog", values: "global: {proxy: {tracer: datadog}}", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["apm.datadoghq.com/env"] = `{"DD_ENV":"prod"}`
		}, want: []string{"- name: DD_ENV\n      value: prod"}},
		{name: "lightstep", values: "global: {proxy: {tracer: lightstep}}", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["proxy.istio.io/config"] = "tracing: {tlsSettings: {mode: SIMPLE, caCertificates: /l/ca.pem}}"
		}, want: []string{"secretName: lightstep.cacert", "mountPath: /l/"}},
		{name: "own user", change: func(_ *Settings, r *Request) {
			r.Pod.Spec.Containers = append(r.Pod.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "mine",
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7))}})
		}, want: []string{"image: mine", "runAsUser: 7", "- -u\n    - \"7\""}},
		{name: "own user with TPROXY", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["sidecar.istio.io/interceptionMode"] = "TPROXY"
			r.Pod.Spec.Containers = append(r.Pod.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "mine",
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7)), RunAsGroup: new(int64(8))}})
		}, want: []string{"runAsGroup: 8\n      runAsNonRoot: false\n      runAsUser: 0\n", "- -u\n    - \"7\""}},
		{name: "low ports", values: "global: {proxy: {capNetBindService: true}}",
			want: []string{"- NET_BIND_SERVICE\n        drop", "runAsGroup: 1337\n      runAsNonRoot: false\n      runAsUser: 0\n"}},
		{name: "low ports with TPROXY", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["sidecar.istio.io/interceptionMode"] = "TPROXY"
			r.Pod.Annotations["sidecar.istio.io/capNetBindService"] = "true"
		}, want: []string{"- NET_ADMIN\n        - NET_BIND_SERVICE\n"}},
		{name: "no inbound ports for the node agent", values: "pilot: {cni: {enabled: true}}\nglobal: {proxy: {includeInboundPorts: ''}}",
			want: []string{`traffic.sidecar.istio.io/includeInboundPorts: ""`}},
		{name: "gRPC agent with volumes", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["inject.istio.io/templates"] = "grpc-agent"
			r.Pod.Annotations["sidecar.istio.io/bootstrapOverride"] = "mine"
			r.Pod.Annotations["sidecar.istio.io/userVolume"] = `{"v": {"emptyDir": {}}}`
			r.Pod.Annotations["sidecar.istio.io/userVolumeMount"] = `{"v": {"mountPath": "/v"}}`
		}, want: []string{"name: istio-podinfo\n    - mountPath: /v\n      name: v\n", "name: custom-bootstrap-volume",
			`"istiod-ca-cert","v"]`}},
		{name: "core dumps of a template of old", change: func(s *Settings, r *Request) {
			s.Config.Templates = map[string]string{"dump": "spec: {initContainers: [{name: enable-core-dump, image: d}]}"}
			r.Pod.Annotations["inject.istio.io/templates"] = "sidecar,dump"
		}, want: []string{"name: istio-init\n", "  - image: d\n    name: enable-core-dump\n    resources: {}\n  volumes:"}},
		{name: "gateway", values: "gateways: {securityContext: {fsGroup: 9}}", change: func(_ *Settings, r *Request) {
			r.Pod.Annotations["inject.istio.io/templates"] = "gateway"
			r.Pod.Spec.Containers = []corev1.Container{{Name: "istio-proxy", Image: "auto"}}
		}, want: []string{"fsGroup: 9", "- router"}, not: []string{"sysctls", "image: auto"}},
		{name: "alias and custom", change: func(s *Settings, r *Request) {
			s.Config.Aliases = map[string][]string{"both": {"sidecar", "more"}}
			s.Config.Templates = map[string]string{"more": `
metadata: {labels: {hub: "{{ .Values.global.hub }}"}}
spec:
  containers: [{name: istio-proxy, args: [only], env: [{name: CA_ADDR, value: changed}], volumeMounts: [{$patch: delete, mountPath: /etc/istio/pod}]}]`}
			s.Config.InjectedAnnotations = map[string]string{"mine": "here"}
			r.Pod.Annotations["inject.istio.io/templates"] = "both"
		}, want: []string{"- only", "value: changed", "hub: hub.example/istio", "mine: here", "name: istio-init"},
			not: []string{"mountPath: /etc/istio/pod"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settings(t)
			if c.values != "" {
				s.Values = c.values
			}
			req := Request{Pod: plainPod()}
			if c.change != nil {
				c.change(&s, &req)
			}
			got, err := newInjector(t, s).Inject(req)
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(got.Pod)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range c.want {
				if !strings.Contains(string(text), w) {
					t.Errorf("want %q in\n%s", w, text)
				}
			}
			for _, n := range c.not {
				if strings.Contains(string(text), n) {
					t.Errorf("do not want %q in\n%s", n, text)
				}
			}
		})
	}
}

// TestModeChanges injects a pod again under other settings: a proxy that has become a native sidecar, or has been one,
// stands in the pod once, with the user's own settings.
func TestModeChanges(t *testing.T) {
	s := settings(t)
	plain := newInjector(t, s)
	s.NativeSidecars = true
	native := newInjector(t, s)
	pod := plainPod()
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "mine"})
	for _, in := range []*Injector{plain, native, plain, native} {
		got, err := in.Inject(Request{Pod: pod})
		if err != nil {
			t.Fatal(err)
		}
		pod = got.Pod
		inits, mains := find(pod.Spec.InitContainers, "istio-proxy"), find(pod.Spec.Containers, "istio-proxy")
		if (inits != nil) != (in == native) || (mains != nil) != (in == plain) {
			t.Fatalf("native %v: init %v, container %v", in == native, inits != nil, mains != nil)
		}
		if p := proxyOf(pod); p.Image != "mine" || (p.RestartPolicy != nil) != (in == native) {
			t.Fatalf("native %v: %s %v", in == native, p.Image, p.RestartPolicy)
		}
	}
}

// TestNodesOfOthersStay injects a pod again after somebody else has changed it.
func TestChangesOfOthersStay(t *testing.T) {
	in, pod := newInjector(t, settings(t)), plainPod()
	once, err := in.Inject(Request{Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	changed := once.Pod
	proxy := proxyOf(changed)
	proxy.Env = append(proxy.Env, corev1.EnvVar{Name: "VAULT", Value: "1"})
	proxy.Args[0] = "other"
	changed.Spec.Containers = append(changed.Spec.Containers, corev1.Container{Name: "late", Image: "l",
		Ports: []corev1.ContainerPort{{ContainerPort: 7}}})
	twice, err := in.Inject(Request{Pod: changed})
	if err != nil {
		t.Fatal(err)
	}
	proxy = proxyOf(twice.Pod)
	if v := variable(proxy, "VAULT"); v == nil {
		t.Error("a variable that somebody else has added is gone")
	}
	if proxy.Args[0] != "proxy" {
		t.Error("what injection sets is not set again")
	}
	if v := variable(proxy, envApplications); v.Value != "app,late" {
		t.Errorf("containers: %s", v.Value)
	}
	if v := variable(proxy, envPorts); !strings.Contains(v.Value, `{"containerPort":7}`) {
		t.Errorf("ports: %s", v.Value)
	}
}
