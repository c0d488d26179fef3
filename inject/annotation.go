package inject

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"istio.io/api/annotation"

	"github.com/pilotd/pilotd/inject/overlay"
	"github.com/pilotd/pilotd/proxyconfig"
)

// checkAnnotations refuses the first annotation of a pod, by name, whose value cannot be used. Values that have no
// effect, and names that nobody knows, are warnings: pods with them have always been let in.
func checkAnnotations(of map[string]string) (warnings []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if check := annotationCheck(name); check != nil {
			if err := check(of[name]); err != nil {
				return nil, fmt.Errorf("annotation %s=%q: %w", name, of[name], err)
			}
			continue
		}
		switch {
		case expectsBool(name):
			if holds := insteadOfBool(name, of[name]); holds != "" {
				warnings = append(warnings,
					fmt.Sprintf("annotation %s=%q: expected true or false; %s", name, of[name], holds))
			}
		case name == annotation.SidecarStatusReadinessApplicationPorts.Name:
			warnings = append(warnings, fmt.Sprintf("annotation %s has no effect: it is of releases of old", name))
		case ours(name) && !known(name):
			warnings = append(warnings, fmt.Sprintf("annotation %s is unknown and has no effect", name))
		}
	}
	return warnings, nil
}

// annotationCheck returns what checks an annotation's value; nil where any text will do.
func annotationCheck(name string) func(string) error {
	switch name {
	case annotation.SidecarInterceptionMode.Name:
		return checkMode
	case annotation.SidecarTrafficIncludeOutboundIPRanges.Name:
		return orAll(checkRanges)
	case annotation.SidecarTrafficExcludeOutboundIPRanges.Name:
		return checkRanges
	case annotation.SidecarTrafficIncludeInboundPorts.Name:
		return orAll(checkPorts)
	case annotation.SidecarTrafficExcludeInboundPorts.Name, annotation.SidecarTrafficExcludeOutboundPorts.Name,
		annotation.SidecarTrafficIncludeOutboundPorts.Name:
		return checkPorts
	case annotation.SidecarStatusPort.Name:
		return checkPort
	case annotation.SidecarStatusReadinessInitialDelaySeconds.Name,
		annotation.SidecarStatusReadinessPeriodSeconds.Name, annotation.SidecarStatusReadinessFailureThreshold.Name:
		return checkNumber
	case annotation.PrometheusMergeMetrics.Name:
		return checkBool
	case annotation.SidecarProxyCPU.Name, annotation.SidecarProxyCPULimit.Name, annotation.SidecarProxyMemory.Name,
		annotation.SidecarProxyMemoryLimit.Name:
		return checkQuantity
	case annotation.SidecarUserVolume.Name:
		return discard(overlay.UserVolumes)
	case annotation.SidecarUserVolumeMount.Name:
		return discard(overlay.UserVolumeMounts)
	case annotation.ProxyConfig.Name:
		return checkProxyConfig
	case annotation.SidecarStatus.Name:
		return func(v string) error { return checkJSON(v, &status{}) }
	case annotation.ProxyOverrides.Name:
		return func(v string) error { return checkJSON(v, &containers{}) }
	}
	return nil
}

// expectsBool tells whether an annotation is true or false, and has a default for everything else.
func expectsBool(name string) bool {
	switch name {
	case annotation.SidecarRewriteAppHTTPProbers.Name, annotation.SidecarNativeSidecar.Name, overlay.CapNetBindService:
		return true
	}
	return false
}

// insteadOfBool says what holds where an annotation has a value that is no boolean to whoever reads it; it is empty for
// one that is.
func insteadOfBool(name, value string) string {
	_, err := strconv.ParseBool(value)
	plain := value == "true" || value == "false"
	switch {
	case name == annotation.SidecarNativeSidecar.Name && value != "" && !plain:
		return "the proxy is a native sidecar"
	case name == overlay.CapNetBindService && !plain:
		return "it counts as false"
	case err != nil:
		return "the default holds"
	}
	return ""
}

// ours tells whether an annotation is in a namespace that only injection and agents read.
func ours(name string) bool {
	prefix, _, _ := strings.Cut(name, "/")
	return prefix == "sidecar.istio.io" || prefix == "inject.istio.io" || prefix == "proxy.istio.io" ||
		strings.HasSuffix(prefix, ".sidecar.istio.io")
}

// known tells whether Istio's API has an annotation, or its templates read one.
func known(name string) bool {
	return name == overlay.CapNetBindService || slices.ContainsFunc(annotation.AllResourceAnnotations(),
		func(a *annotation.Instance) bool { return a.Name == name })
}

func checkMode(v string) error {
	if v != "REDIRECT" && v != "TPROXY" && v != "NONE" {
		return errors.New("expected REDIRECT, TPROXY or NONE")
	}
	return nil
}

// orAll lets "*" pass.
func orAll(check func(string) error) func(string) error {
	return func(v string) error {
		if v == "*" {
			return nil
		}
		return check(v)
	}
}

func checkBool(v string) error {
	if _, err := strconv.ParseBool(v); err != nil {
		return errors.New("expected true or false")
	}
	return nil
}

// checkRanges takes no spaces: rules are written of the ranges as they stand.
func checkRanges(v string) error {
	if v == "" {
		return nil
	}
	for r := range strings.SplitSeq(v, ",") {
		if _, err := netip.ParsePrefix(r); err != nil {
			return fmt.Errorf("expected IP ranges such as 10.0.0.0/8, with commas between, got %q", r)
		}
	}
	return nil
}

func checkPorts(v string) error {
	if strings.TrimSpace(v) == "" {
		return nil
	}
	for p := range strings.SplitSeq(v, ",") {
		if err := checkPort(p); err != nil {
			return fmt.Errorf("expected port numbers with commas between, got %q", p)
		}
	}
	return nil
}

func checkPort(v string) error {
	if _, err := strconv.ParseUint(strings.TrimSpace(v), 10, 16); err != nil {
		return errors.New("expected a port number, 0 to 65535")
	}
	return nil
}

func checkNumber(v string) error {
	if _, err := strconv.ParseUint(v, 10, 31); err != nil {
		return errors.New("expected a number of at least 0")
	}
	return nil
}

func checkQuantity(v string) error {
	if q, err := resource.ParseQuantity(strings.TrimSpace(v)); err != nil || q.Sign() < 0 {
		return errors.New("expected a quantity such as 100m or 128Mi")
	}
	return nil
}

func checkProxyConfig(v string) error {
	read, err := proxyconfig.Read(v)
	if err == nil && read.GetConcurrency().GetValue() < 0 {
		return errors.New("concurrency: expected a number of at least 0")
	}
	return err
}

func checkJSON(v string, into any) error {
	if err := json.Unmarshal([]byte(v), into); err != nil {
		return fmt.Errorf("expected the JSON that an injection has written: %s", oneLine(err))
	}
	return nil
}

func discard[T any](read func(string) ([]T, error)) func(string) error {
	return func(v string) error {
		_, err := read(v)
		return err
	}
}
