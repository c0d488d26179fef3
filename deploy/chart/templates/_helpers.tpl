{{/* suffix is "-REVISION", or nothing for the default revision. */}}
{{- define "pilotd.suffix" -}}
{{- if and .Values.revision (ne .Values.revision "default") }}-{{ .Values.revision }}{{ end }}
{{- end }}

{{- define "pilotd.revision" -}}{{ default "default" .Values.revision }}{{- end }}

{{- define "pilotd.name" -}}{{ .Values.name }}{{ include "pilotd.suffix" . }}{{- end }}

{{/* Names of what is in no namespace have it in their own. */}}
{{- define "pilotd.clusterName" -}}{{ include "pilotd.name" . }}-{{ .Release.Namespace }}{{- end }}

{{/* webhookSuffix is what istiod's charts put behind the names of webhook configurations. */}}
{{- define "pilotd.webhookSuffix" -}}
{{- if ne .Release.Namespace "istio-system" }}-{{ .Release.Namespace }}{{ end }}
{{- end }}

{{/* selector never changes in the life of a release. */}}
{{- define "pilotd.selector" -}}
app: {{ .Values.name }}
istio.io/rev: {{ include "pilotd.revision" . | quote }}
{{- end }}

{{- define "pilotd.labels" -}}
{{ include "pilotd.selector" . }}
app.kubernetes.io/name: pilotd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: istio
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "pilotd.image" -}}
{{- if contains "/" .Values.image -}}
{{ .Values.image }}
{{- else -}}
{{ required "hub: expected the registry that pilotd's image was pushed to; there is no public one" .Values.hub }}/{{ .Values.image }}:{{ default .Chart.AppVersion .Values.tag }}
{{- end -}}
{{- end }}

{{/* ownCA is "true" where pilotd is the mesh's certificate authority. */}}
{{- define "pilotd.ownCA" -}}
{{- $given := get .Values.env "ENABLE_CA_SERVER" | toString -}}
{{- if has $given (list "false" "False" "FALSE" "f" "F" "0") }}false{{ else }}true{{ end -}}
{{- end }}

{{/* conditions is "true" where pilotd writes into the status of Istio's objects. */}}
{{- define "pilotd.conditions" -}}
{{- or .Values.global.istiod.enableAnalysis (eq (get .Values.env "PILOT_ENABLE_STATUS" | toString) "true") (eq (get .Values.env "PILOT_ENABLE_ANALYSIS" | toString) "true") -}}
{{- end }}

{{/* several is "true" where there are at least two replicas. */}}
{{- define "pilotd.several" -}}
{{- if .Values.autoscaleEnabled -}}
{{ gt (int .Values.autoscaleMin) 1 }}
{{- else -}}
{{ gt (int .Values.replicaCount) 1 }}
{{- end -}}
{{- end }}

{{- define "pilotd.injectorName" -}}
istio-sidecar-injector{{ include "pilotd.suffix" . }}{{ include "pilotd.webhookSuffix" . }}
{{- end }}

{{- define "pilotd.tagName" -}}
istio-revision-tag-{{ .tag }}{{ include "pilotd.webhookSuffix" .root }}
{{- end }}

{{- define "pilotd.validatorName" -}}
istio-validator{{ include "pilotd.suffix" . }}-{{ .Release.Namespace }}
{{- end }}
