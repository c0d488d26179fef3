package main

import (
	"bytes"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a command and returns what it prints.
func run(args ...string) (string, error) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

// TestInjectedArguments has the arguments of each init container that injection writes print rules.
func TestInjectedArguments(t *testing.T) {
	files, err := filepath.Glob("../../inject/testdata/pods/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no pods", err)
	}
	tried := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pod := corev1.Pod{}
		if err := yaml.Unmarshal(archive.Files[1].Data, &pod); err != nil {
			t.Fatal(file, err)
		}
		for _, c := range pod.Spec.InitContainers {
			if c.Name != "istio-init" && c.Name != "istio-validation" {
				continue
			}
			tried++
			to := "redirect to :15006"
			if slices.Contains(c.Args, "TPROXY") {
				to = "tproxy to :15006"
			}
			out, err := run(append(c.Args, "--dry-run")...)
			if err != nil || !strings.Contains(out, to) || strings.Contains(out, "has no effect") {
				t.Error(file, c.Args, err, out)
			}
		}
	}
	if tried < 10 {
		t.Error("tried", tried)
	}
}

// IPv6 is captured where it is all that there is, or with dual stack; what was written of it is always taken away.
func TestFamily(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("fd00::1")
	for _, c := range []struct {
		addresses          []netip.Addr
		dual, clean, warns bool
		want               bool
	}{
		{addresses: []netip.Addr{v4}}, {addresses: []netip.Addr{v6}, want: true},
		{addresses: []netip.Addr{v4, v6}, warns: true}, {addresses: []netip.Addr{v6, v4}, want: true},
		{addresses: []netip.Addr{v4, v6}, dual: true, want: true}, {addresses: []netip.Addr{v4}, dual: true}, {},
		{addresses: []netip.Addr{v4, v6}, clean: true, want: true},
	} {
		var out bytes.Buffer
		f := captureFlags{addresses: c.addresses, cleanUp: c.clean}
		f.family(c.dual, slog.New(slog.NewTextHandler(&out, nil)))
		if f.IPv6 != c.want || (out.Len() > 0) != c.warns {
			t.Errorf("%+v: %v %s", c, f.IPv6, out.String())
		}
	}
}

// Bad arguments are refused, and so is an environment that cannot be followed.
func TestRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"sidecar or router": {"proxy", "ingress"}, "log_output_level": {"proxy", "sidecar", "--log_output_level=default:loud"},
		"outbound ranges": {"nftables", "-i", "x", "-n"}, "invalid argument": {"iptables", "-p", "70000"},
	} {
		if out, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(want, out, err)
		}
	}
	t.Setenv("ISTIO_OUTBOUND_OWNER_GROUPS", "202,nobody-is-called-so")
	if _, err := run("iptables", "-n"); err == nil || !strings.Contains(err.Error(), "OWNER_GROUPS") {
		t.Error(err)
	}
	t.Setenv("ISTIO_OUTBOUND_OWNER_GROUPS", "202, root")
	t.Setenv("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", "7")
	const none = "meta skgid != 202 meta skgid != 0 return"
	if out, err := run("iptables", "-n"); err != nil || !strings.Contains(out, none) ||
		!strings.Contains(out, "\t\tmeta skgid 7 return") {
		t.Error(out, err)
	}
	if _, err := run("iptables", "--skip-rule-apply", "--run-validation", "-u", "4711"); err == nil ||
		!strings.Contains(err.Error(), "4711") {
		t.Error("a user whose connections are the application's can find out:", err)
	}
	if out, err := run("iptables", "--cleanup-only", "-n"); err != nil || strings.Contains(out, "chain") {
		t.Error(out, err)
	}
}
