package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/pilotd/pilotd/cluster"
	"github.com/pilotd/pilotd/report"
)

// TestProxyConfigs takes objects as they come and go: one that cannot be used is reported with its field, and its last
// good version stays; one of another revision is not looked at.
func TestProxyConfigs(t *testing.T) {
	reports := report.New(report.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	p := newProxyConfigs("canary", reports)
	object := func(name, spec string) cluster.ProxyConfig {
		return cluster.ProxyConfig{Namespace: "shop", Name: name, Spec: []byte(spec)}
	}
	theirs := object("theirs", `{"concurrency": -1}`)
	theirs.Labels = map[string]string{"istio.io/rev": "default"}
	ours := object("ours", `{"concurrency": 2}`)
	ours.Labels = map[string]string{"istio.io/rev": "canary"}
	for _, step := range []struct {
		all         []cluster.ProxyConfig
		inForce     string
		rejections  string
		description string
	}{
		{[]cluster.ProxyConfig{ours, theirs, object("a", `{"concurrency": 3}`)}, "ours=2 a=3", "", "good ones"},
		{[]cluster.ProxyConfig{object("a", `{"concurrency": -3}`), object("b", `{"concurrency": "x"}`)}, "a=3",
			"a spec.concurrency, b spec", "an edit that is bad, and a new one"},
		{[]cluster.ProxyConfig{object("a", `{"environmentVariables": {"A=B": "c"}}`)}, "a=3",
			"a spec.environmentVariables.A=B", "another bad edit, and one is gone"},
		{[]cluster.ProxyConfig{object("a", `{"concurrency": 4}`), object("c", `null`)}, "a=4 c=0", "", "it is mended"},
		{[]cluster.ProxyConfig{object("a", `{"image": {"imageType": "a b"}}`),
			object("d", `{"selector": {"matchLabels": {"app": ""}}}`), object("e", `{"selector": {"matchLabels": {"*": "a"}}}`)},
			"a=4 d=0", "a spec.image.imageType, e spec.selector.matchLabels.*", "more"},
		{nil, "", "", "all are gone"},
		{[]cluster.ProxyConfig{object("a", `{"concurrency": -3}`)}, "", "a spec.concurrency", "what was good is forgotten"},
	} {
		var inForce, rejections []string
		for _, c := range p.take(step.all) {
			inForce = append(inForce, fmt.Sprintf("%s=%d", c.Name, c.Spec.GetConcurrency().GetValue()))
		}
		for _, s := range reports.All() {
			if s.Cause != report.Invalid || s.Key.Kind.Name() != "ProxyConfig" || s.Reason == "" {
				t.Errorf("%+v", s)
			}
			rejections = append(rejections, s.Key.Name+" "+s.Field)
		}
		if got := strings.Join(inForce, " "); got != step.inForce {
			t.Errorf("%s: in force %q, want %q", step.description, got, step.inForce)
		}
		if got := strings.Join(rejections, ", "); got != step.rejections {
			t.Errorf("%s: refused %q, want %q", step.description, got, step.rejections)
		}
	}
}
