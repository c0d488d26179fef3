package overlay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"

	meshconfig "istio.io/api/mesh/v1alpha1"
)

// TestFunctions calls each function of templates as templates written for Istio call it.
func TestFunctions(t *testing.T) {
	d := &Data{ProxyConfig: &meshconfig.ProxyConfig{StatusPort: 15020, BinaryPath: "/b",
		DrainDuration: durationpb.New(
			7 * time.Second,
		)}, Values: map[string]any{"empty": "", "m": map[string]any{"a": 1}}}
	d.ObjectMeta.Annotations = map[string]string{"a": "1", "j": `{"k":"v"}`}
	d.Spec.Containers = []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{ContainerPort: 80},
		{ContainerPort: 53, Protocol: corev1.ProtocolUDP}}}, {Name: ProxyContainer,
		Ports: []corev1.ContainerPort{{ContainerPort: 9}}}}
	for text, want := range map[string]string{
		"{{ annotation .ObjectMeta `a` 7 }} {{ annotation .ObjectMeta `b` 7 }}":                    "1 7",
		"{{ annotation .ObjectMeta `x` .ProxyConfig.InterceptionMode }}":                           "REDIRECT",
		"{{ isset .ObjectMeta.Annotations `a` }} {{ isset .ObjectMeta.Annotations `b` }}":          "true false",
		"{{ valueOrDefault .Values.empty `d` }} {{ valueOrDefault .Values.none `d` }}":             "d d",
		"{{ valueOrDefault `v` `d` }} {{ contains `/` `a/b` }} {{ toLower `Ab` }}":                 "v true ab",
		"{{ env `HERE` `d` }} {{ env `PATH` `d` }}":                                                "here d",
		"{{ directory `/a/b.pem` }} {{ formatDuration .ProxyConfig.DrainDuration }}":               "/a/ 7s",
		"{{ excludeInboundPort 15020 `` }} {{ excludeInboundPort `0` `1,2` }}":                     "15020 1,2",
		"{{ excludeInboundPort 2 `1,2` }} {{ excludeInboundPort ` 3 ` `1,2` }}":                    "1,2 1,2,3",
		"{{ includeInboundPorts .Spec.Containers }} {{ applicationPorts .Spec.Containers }}":       "80 80",
		"{{ structToJSON (index (index .Spec.Containers 0).Ports 0) }}":                            `{"containerPort":80}`,
		"{{ protoToJSON .ProxyConfig }}":                                                           `{"binaryPath":"/b","drainDuration":"7s"}`,
		"{{ toJSON .ObjectMeta.Labels }} {{ (fromJSON (index .ObjectMeta.Annotations `j`)).k }}":   "{} v",
		"{{ toYaml .Values.m | indent 4 }}":                                                        "a: 1",
		"{{ \"a\\nb\" | indent 2 }}":                                                               "a\n  b",
		"{{ toJsonMap (strdict `a` `1`) (omit (strdict `b` `2` `c` `3`) `c`) }}":                   `{"a":"1","b":"2"}`,
		"{{ (mergeMaps (strdict `a` `1`) (strdict `a` `2`)).a }} {{ omitNil (dict `a` nil) }}":     "2 map[]",
		"{{ appendMultusNetwork `` `default/n` }};{{ appendMultusNetwork `a` `default/n` }}":       "default/n;a, default/n",
		"{{ appendMultusNetwork `[{\"name\":\"n\"}]` `default/n` }}":                               `[{"name":"n"}]`,
		"{{ appendMultusNetwork `[{\"x\":\"n\"},]` `default/n` }}":                                 `[{"x":"n"},]`,
		"{{ appendMultusNetwork `a, default/n` `default/n` }}":                                     "a, default/n",
		"{{ appendMultusNetwork `[{\"name\":\"a\"}]` `default/n` }}":                               `[{"name":"a"}, {"name": "n", "namespace": "default"}]`,
		"{{ list `a` `b` | join `,` }} {{ `x` | quote }} {{ default `d` `` }} {{ trunc 2 `abc` }}": `a,b "x" d ab`,
		"{{ kubevirtInterfaces `a,b` }} {{ excludeInterfaces `c` }}":                               "a,b c",
	} {
		parsed, err := Parse("t", text, Surroundings{Env: map[string]string{"HERE": "here"},
			DefaultProxy: &meshconfig.ProxyConfig{StatusPort: 15020}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var b strings.Builder
		if err := parsed.text.Execute(&b, d); err != nil || b.String() != want {
			t.Errorf("%s: got %q %v, want %q", text, b.String(), err, want)
		}
	}
}

// TestUnrepeatable has functions that a template must not have: a pod may be injected twice.
func TestUnrepeatable(t *testing.T) {
	for _, f := range []string{"now", "randAlpha 3", "uuidv4", "expandenv `$HOME`", "getHostByName `localhost`",
		"genPrivateKey `rsa`", "shuffle `ab`", "randInt 1 9", "ago 3", "htmlDate 3", "htmlDateInZone 3 `UTC`"} {
		if _, err := Parse("t", "{{ "+f+" }}", Surroundings{}); err == nil {
			t.Errorf("%s is there", f)
		}
	}
}

// TestExecuteRefuses has templates that write something else than a pod.
func TestExecuteRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .Nope }}": "can't evaluate field Nope", "a: [": "does not write YAML", "- 1": "does not write an object",
		"spec: {containers: 3}":                                      "does not write a pod",
		"{{ range until 300000 }}0123456789{{ end }}":                "writes more than 1 MiB",
		fmt.Sprintf("{{ range 100000 }}%s{{ end }}", "0123456789ab"): "writes more than 1 MiB",
	} {
		parsed, err := Parse("t", text, Surroundings{})
		if err == nil {
			_, _, err = parsed.Execute(&Data{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestExecuteWarns has templates that write fields which a pod does not have, among those that a merge is told by.
func TestExecuteWarns(t *testing.T) {
	for text, want := range map[string]string{
		"spec: {contaners: [{name: a}]}":                                                                     `template t: unknown field "spec.contaners": it has no effect`,
		"spec: {containers: [{name: a, imgae: b}], dnsPolicy: Default}":                                      `unknown field "spec.containers[0].imgae"`,
		"spec: {containers: [{name: a, $patch: delete}], $setElementOrder/containers: [{name: a}]}":          "",
		"spec: {volumes: [{name: a, emptyDir: {}, $retainKeys: [name, emptyDir]}]}":                          "",
		"metadata: {$deleteFromPrimitiveList/finalizers: [a], labels: {any.thing/here: b, $patch: replace}}": "",
	} {
		parsed, err := Parse("t", text, Surroundings{})
		if err != nil {
			t.Fatal(err)
		}
		_, warnings, err := parsed.Execute(&Data{})
		if err != nil || !strings.Contains(strings.Join(warnings, "\n"), want) || (len(warnings) > 0) != (want != "") {
			t.Errorf("%s: %q %v, want %q", text, warnings, err, want)
		}
	}
}
