package inject

import "testing"

// TestLive has an Injector once both of its parts are known, and keeps the last good one.
func TestLive(t *testing.T) {
	mesh := settings(t).Mesh
	l := NewLive(Settings{Revision: ConfigMapName("canary")})
	if err := l.SetConfigMap(map[string]string{"config": "policy: disabled"}); err != nil || l.Injector() != nil {
		t.Fatalf("without a mesh configuration: %v %v", l.Injector(), err)
	}
	if err := l.SetMesh(mesh); err != nil || l.Injector() == nil {
		t.Fatalf("with both: %v %v", l.Injector(), err)
	}
	good := l.Injector()
	for _, bad := range []map[string]string{{"config": "policy: maybe"}, {"values": "[]"},
		{"config": "templates: {a: '{{'}"}} {
		if err := l.SetConfigMap(bad); err == nil || l.Injector() != good {
			t.Errorf("%v was taken: %v", bad, err)
		}
	}
	if got, _ := l.Injector().Inject(Request{Pod: plainPod()}); got.Skipped == "" {
		t.Error("the policy of the ConfigMap does not hold")
	}
	if err := l.SetConfigMap(nil); err != nil || l.Injector() == good {
		t.Errorf("good settings were not taken: %v", err)
	}
	if got := l.Injector().settings.Revision; got != "istio-sidecar-injector-canary" {
		t.Errorf("other settings are lost: %q", got)
	}
}
