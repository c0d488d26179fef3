package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: a}]}}}
`

// TestInject runs the command: with defaults, with the files of an installation, and with what it refuses.
func TestInject(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	in := write("in.yaml", deployment)
	badTemplate := write("badtemplate.yaml", "templates: {a: '{{ nope }}'}")
	for _, c := range []struct {
		name  string
		args  []string
		input string
		want  []string // in the output, or in the error
	}{
		{"defaults", []string{"-f", in}, "", []string{"name: istio-proxy", "image: docker.io/istio/proxyv2:1.31.1",
			"value: kubernetes://apis/apps/v1/namespaces/shop/deployments/web", "istio.io/rev: default"}},
		{"input", []string{"-f", "-", "-r", "canary"}, deployment, []string{"istio.io/rev: canary"}},
		{"installation", []string{"-f", in, "--nativeSidecars",
			"--valuesFile", write("values.yaml", "global: {hub: h.example, tag: 7}"),
			"--meshConfigFile", write("mesh.yaml", "trustDomain: td.example\ndefaultConfig: {image: {imageType: debug}}"),
			"--injectConfigFile", write("config.yaml", "injectedAnnotations: {mine: here}")},
			"", []string{"image: h.example/proxyv2:7-debug", "value: td.example", "restartPolicy: Always", "mine: here"}},
		{"nothing", nil, "", []string{"want -f FILE"}},
		{"no such file", []string{"-f", filepath.Join(dir, "none")}, "", []string{"no such file"}},
		{"bad mesh", []string{"-f", in, "--meshConfigFile", write("bad.yaml", "trustDomian: x")}, "",
			[]string{"mesh configuration: trustDomian"}},
		{"bad values", []string{"-f", in, "--valuesFile", write("badvalues.yaml", "[]")}, "",
			[]string{"values: expected an object"}},
		{"bad config", []string{"-f", in, "--injectConfigFile", write("badconfig.yaml", "policy: maybe")}, "",
			[]string{"policy: expected enabled or disabled"}},
		{"bad template", []string{"-f", in, "--injectConfigFile", badTemplate}, "",
			[]string{`template: a:1: function "nope" not defined`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := rootCommand()
			var out, errs bytes.Buffer
			cmd.SetArgs(append([]string{"inject"}, c.args...))
			cmd.SetOut(&out)
			cmd.SetErr(&errs)
			cmd.SetIn(strings.NewReader(c.input))
			got := ""
			if err := cmd.Execute(); err != nil {
				got = err.Error()
			} else {
				got = out.String()
			}
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("want %q in\n%s%s", w, got, errs.String())
				}
			}
		})
	}
}
