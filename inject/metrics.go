package inject

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"istio.io/api/annotation"
)

// The annotations that Prometheus configurations go by. Those treat each character that is no letter or digit as an
// underscore, so that several spellings are one annotation.
const (
	scrapeAnnotation = "prometheus_io_scrape"
	portAnnotation   = "prometheus_io_port"
	pathAnnotation   = "prometheus_io_path"
)

// scraping is what the agent gets to know of how the application wants to be scraped.
type scraping struct {
	Scrape string `json:"scrape"`
	Path   string `json:"path"`
	Port   string `json:"port"`
}

// mergeMetrics points Prometheus at the agent, which asks the application and the proxy and answers with both.
func (i *injection) mergeMetrics() error {
	if !i.mergesMetrics() || merged(i.pod, i.statusPort()) {
		return nil
	}
	var wanted scraping
	for name, value := range i.pod.Annotations {
		switch plain(name) {
		case scrapeAnnotation:
			wanted.Scrape = value
		case pathAnnotation:
			wanted.Path = value
		case portAnnotation:
			wanted.Port = value
		}
	}
	if proxy := proxyOf(i.pod); proxy != nil && wanted != (scraping{}) {
		text, err := json.Marshal(wanted)
		if err != nil {
			return err
		}
		proxy.Env = append(proxy.Env, corev1.EnvVar{Name: "ISTIO_PROMETHEUS_ANNOTATIONS", Value: string(text)})
	}
	clearScraping(i.pod.Annotations)
	i.pod.Annotations["prometheus.io/scrape"] = "true"
	i.pod.Annotations["prometheus.io/path"] = "/stats/prometheus"
	i.pod.Annotations["prometheus.io/port"] = strconv.Itoa(int(i.statusPort()))
	return nil
}

// mergesMetrics reports whether metrics are merged: not where the user scrapes nothing, and as annotation or mesh say.
func (i *injection) mergesMetrics() bool {
	for name, value := range i.pod.Annotations {
		if plain(name) == scrapeAnnotation {
			if yes, err := strconv.ParseBool(value); err == nil && !yes {
				return false
			}
		}
	}
	if yes, err := strconv.ParseBool(i.pod.Annotations[annotation.PrometheusMergeMetrics.Name]); err == nil {
		return yes
	}
	if m := i.settings.Mesh.GetEnablePrometheusMerge(); m != nil {
		return m.Value
	}
	return true
}

// merged reports whether Prometheus is sent to the agent already.
func merged(pod *corev1.Pod, agent int32) bool {
	for name, value := range pod.Annotations {
		if plain(name) == portAnnotation && value == strconv.Itoa(int(agent)) {
			return true
		}
	}
	return false
}

func clearScraping(annotations map[string]string) {
	for name := range annotations {
		switch plain(name) {
		case scrapeAnnotation, portAnnotation, pathAnnotation:
			delete(annotations, name)
		}
	}
}

// plain returns an annotation's name as Prometheus spells it in labels.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
