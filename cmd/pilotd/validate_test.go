package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/snapshot"
	"github.com/pilotd/pilotd/status"
)

// ask has the webhook decide on an object.
func ask(t *testing.T, v *validator, kind, object string) *admissionv1.AdmissionResponse {
	t.Helper()
	group, name, _ := strings.Cut(kind, " ")
	r := httptest.NewRequest("POST", "/validate", strings.NewReader(fmt.Sprintf(
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":%q,
"version":"v1","kind":%q},"namespace":"shop","name":"x","operation":"CREATE","object":%s}}`, group, name, object)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	v.handler().ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil || review.Response.UID != "u" {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return review.Response
}

func newTestValidator() *validator {
	v := newValidator(0, slog.New(slog.NewTextHandler(io.Discard, nil)))
	v.failed = status.NewMetrics("").Refused
	return v
}

// TestValidation has what is let in, with which warning, and what is refused, with which words.
func TestValidation(t *testing.T) {
	const virtualService = "networking.istio.io VirtualService"
	route := func(match, more string) string {
		return `{"metadata":{"name":"x","namespace":"shop"},"spec":{"hosts":["web"],"http":[{` + match +
			`"route":[{"destination":{"host":"web"}}]}]` + more + `}}`
	}
	for _, c := range []struct{ name, kind, object, refused, warning string }{
		{name: "good", kind: virtualService, object: route("", "")},
		{name: "a bad expression", kind: virtualService, object: route(`"match":[{"uri":{"regex":"(["}}],`, ""),
			refused: "spec.http[0].match[0].uri.regex: "},
		{name: "a field of another type", kind: virtualService, object: `{"metadata":{"name":"x"},"spec":{"hosts":"web"}}`,
			refused: "spec: "},
		{name: "a kind that is not served", kind: "networking.istio.io EnvoyFilter",
			object: `{"metadata":{"name":"x"},"spec":{"configPatches":[]}}`, warning: "the kind is not served yet: "},
		{name: "a ProxyConfig", kind: "networking.istio.io ProxyConfig", object: `{"spec":{"concurrency":2}}`},
		{name: "a ProxyConfig without a spec", kind: "networking.istio.io ProxyConfig", object: `{"metadata":{"name":"x"}}`},
		{name: "a bad ProxyConfig", kind: "networking.istio.io ProxyConfig", object: `{"spec":{"concurrency":-2}}`,
			refused: "spec.concurrency: expected at least 0, got -2"},
		{name: "a ProxyConfig of another form", kind: "networking.istio.io ProxyConfig", object: `{"spec":{"concurrency":[]}}`,
			refused: "spec: "},
		{name: "a kind of others", kind: "example.com Thing", object: `{"spec":7}`},
		{name: "a kind of Kubernetes's", kind: " Service", object: `{"spec":7}`},
		{name: "a name that is made later", kind: virtualService, object: strings.Replace(route("", ""), `"name":"x"`,
			`"generateName":"x-"`, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, newTestValidator(), c.kind, c.object)
			if got.Allowed != (c.refused == "") || !got.Allowed && !strings.HasPrefix(got.Result.Message, c.refused) {
				t.Errorf("allowed: %v, %v; want %q", got.Allowed, got.Result, c.refused)
			}
			if warnings := strings.Join(got.Warnings, " "); !strings.HasPrefix(warnings, c.warning) ||
				(warnings == "") != (c.warning == "") {
				t.Errorf("warnings %q, want %q", warnings, c.warning)
			}
		})
	}
}

// TestValidationIsCounted has the metrics.
func TestValidationIsCounted(t *testing.T) {
	v := newTestValidator()
	ask(t, v, "networking.istio.io Gateway", `{"metadata":{"name":"x"},"spec":{"servers":[{"port":{"number":70000}}]}}`)
	ask(t, v, "networking.istio.io Sidecar", `{"metadata":{"name":"x"},"spec":{"egress":[{"hosts":["./*"]}]}}`)
	if n := testutil.ToFloat64(v.failed.WithLabelValues("Gateway")); n != 1 {
		t.Error("refused:", n)
	}
	if n := testutil.ToFloat64(v.passed.WithLabelValues("Sidecar")); n != 1 {
		t.Error("let in:", n)
	}
}

// TestValidationSaysWhatTheStoreSays has a Store and the webhook look at the same bad object.
func TestValidationSaysWhatTheStoreSays(t *testing.T) {
	const text = `{"metadata":{"name":"x","namespace":"shop"},"spec":{"host":"","trafficPolicy":{"tls":{"mode":"MUTUAL"}}}}`
	v := newTestValidator()
	k := v.kinds.InAPI("networking.istio.io", "DestinationRule")
	o := k.New()
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	store := ingest.NewStore(nowhere{}, ingest.Settings{Log: v.log})
	store.Apply([]ingest.Event{{Source: "file", Key: k.Key("shop", "x"), Object: o}})
	standing := store.Rejections()
	if len(standing) != 1 {
		t.Fatal(standing)
	}
	want := said(standing[0].Field, standing[0].Reason)
	if got := ask(t, v, "networking.istio.io DestinationRule", text); got.Allowed || got.Result.Message != want {
		t.Errorf("%v, want %q", got, want)
	}
}

// nowhere takes what a Store hands on.
type nowhere struct{}

func (nowhere) Apply(*snapshot.Delta) {}
