{{/*
pilotd.webhook is one entry of a MutatingWebhookConfiguration: root, name, and the two selectors' expressions. The leader
writes the caBundle.
*/}}
{{- define "pilotd.webhook" }}
- name: {{ .name }}
  admissionReviewVersions: [v1]
  clientConfig:
    service:
      name: {{ include "pilotd.name" .root }}
      namespace: {{ .root.Release.Namespace }}
      path: /inject
      port: 443
  failurePolicy: Fail
  sideEffects: None
  reinvocationPolicy: {{ .root.Values.sidecarInjectorWebhook.reinvocationPolicy }}
  rules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [pods]
      scope: Namespaced
  namespaceSelector:
    matchExpressions:
      {{- range .namespace }}
      - {{ . }}
      {{- end }}
  objectSelector:
    matchExpressions:
      {{- range .object }}
      - {{ . }}
      {{- end }}
{{- end }}

{{/*
pilotd.webhooks are the entries that choose pods of a revision or of a tag (root, revision): those of namespaces or pods
with label istio.io/rev, and for "default" those with istio-injection and sidecar.istio.io/inject too. No two of them
choose the same pod, and no other pod than those asks pilotd anything.
*/}}
{{- define "pilotd.webhooks" -}}
{{- $rev := printf "{key: istio.io/rev, operator: In, values: [%s]}" (quote .revision) }}
{{- $noRev := "{key: istio.io/rev, operator: DoesNotExist}" }}
{{- $noInjection := "{key: istio-injection, operator: DoesNotExist}" }}
{{- $notOff := "{key: sidecar.istio.io/inject, operator: NotIn, values: [\"false\"]}" }}
{{- include "pilotd.webhook" (dict "root" .root "name" "rev.namespace.sidecar-injector.istio.io" "namespace" (list $rev $noInjection) "object" (list $notOff)) }}
{{- include "pilotd.webhook" (dict "root" .root "name" "rev.object.sidecar-injector.istio.io" "namespace" (list $noRev $noInjection) "object" (list $notOff $rev)) }}
{{- if eq .revision "default" }}
{{- include "pilotd.webhook" (dict "root" .root "name" "namespace.sidecar-injector.istio.io" "namespace" (list "{key: istio-injection, operator: In, values: [enabled]}") "object" (list $notOff)) }}
{{- include "pilotd.webhook" (dict "root" .root "name" "object.sidecar-injector.istio.io" "namespace" (list $noInjection $noRev) "object" (list "{key: sidecar.istio.io/inject, operator: In, values: [\"true\"]}" $noRev)) }}
{{- if .root.Values.sidecarInjectorWebhook.enableNamespacesByDefault }}
{{- include "pilotd.webhook" (dict "root" .root "name" "auto.sidecar-injector.istio.io" "namespace" (list $noInjection $noRev "{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-public, kube-node-lease, local-path-storage]}") "object" (list "{key: sidecar.istio.io/inject, operator: DoesNotExist}" $noRev)) }}
{{- end }}
{{- end }}
{{- end }}
