{{- define "placement-ac.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* At most 50 characters: with its suffix the name of a Pod has at most 63. */}}
{{- define "placement-ac.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $release := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $release .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The labels of one of a release's components that never change (a list: root, component). */}}
{{- define "placement-ac.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "placement-ac.name" $root | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The labels of an object (a list: root, component). */}}
{{- define "placement-ac.labels" -}}
{{- $root := index . 0 -}}
{{ include "placement-ac.selectorLabels" . }}
app.kubernetes.io/part-of: placement-ac
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The metadata of an object (a list: root, component, more labels) in the namespace of the release. */}}
{{- define "placement-ac.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "placement-ac.fullname" $root | quote }}
namespace: {{ $root.Release.Namespace | quote }}
labels:
  {{- include "placement-ac.labels" . | nindent 2 }}
  {{- if gt (len .) 2 }}
  {{- with index . 2 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "placement-ac.serviceAccountName" -}}
{{ default (ternary (include "placement-ac.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "placement-ac.image" -}}
{{- $image := .Values.image }}
{{- $repository := required "set image.repository: no image is published (docs/install.md, The image)" $image.repository }}
{{- if $image.digest }}
{{- printf "%s@%s" $repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default (printf "v%s" .Chart.AppVersion) $image.tag) }}
{{- end }}
{{- end }}

{{/* The port of an address in the settings (a list: root, section, key). */}}
{{- define "placement-ac.port" -}}
{{ get (get (index . 0).Values.config (index . 1)) (index . 2) | splitList ":" | last }}
{{- end }}

{{/* The namespaces of Placements, comma-separated. */}}
{{- define "placement-ac.placementNamespaces" -}}
{{ default (list .Values.kueue.namespace) .Values.placements.namespaces | join "," }}
{{- end }}

{{/* Settings that are not allowed in the settings file: each has a value of its own, which it is named by here. */}}
{{- define "placement-ac.ownValues" -}}
placements.namespaces: placements.namespaces
kueue.namespace: kueue.namespace
clusterNames: clusterNames
dispatch.enabled: dispatcher.enabled
credentials.accessProviders: clusterProfiles.accessProviders
credentials.provision: credentials.provision
credentials.account: credentials.account
credentials.form: credentials.form
credentials.probe: probing.enabled
workerSetup.method: workerSetup.enabled
workerSetup.template: workerSetup.template
scores.enabled: scores.enabled
{{- end }}

{{/* The settings that have a value of their own: environment variables take precedence over the settings file. */}}
{{- define "placement-ac.env" -}}
{{- with .Values.clusterNames }}
- {name: PLACEMENT_AC_CLUSTER_NAMES, value: {{ . | quote }}}
{{- end }}
{{- if .Values.dispatcher.enabled }}
- {name: PLACEMENT_AC_DISPATCHER, value: "true"}
{{- end }}
{{- if .Values.probing.enabled }}
- {name: PLACEMENT_AC_CREDENTIALS_PROBE, value: "true"}
{{- end }}
{{- if .Values.workerSetup.enabled }}
- {name: PLACEMENT_AC_WORKER_SETUP, value: manifestwork}
{{- end }}
{{- with .Values.workerSetup.template }}
- {name: PLACEMENT_AC_WORKER_SETUP_TEMPLATE, value: {{ . | quote }}}
{{- end }}
{{- if .Values.scores.enabled }}
- {name: PLACEMENT_AC_REPORT_SCORES, value: "true"}
{{- end }}
{{- with .Values.credentials.form }}
- {name: PLACEMENT_AC_CREDENTIALS_FORM, value: {{ . | quote }}}
{{- end }}
{{- if .Values.clusterProfiles.enabled }}
- {name: PLACEMENT_AC_ACCESS_PROVIDERS, value: /etc/access-providers/access-providers.yaml}
{{- end }}
{{- with .Values.credentials.provision }}
- {name: PLACEMENT_AC_CREDENTIALS_PROVISION, value: {{ . | quote }}}
{{- end }}
{{- if ne .Values.credentials.account "placement-ac" }}
- {name: PLACEMENT_AC_CREDENTIALS_ACCOUNT, value: {{ .Values.credentials.account | quote }}}
{{- end }}
{{- if ne .Values.kueue.namespace "kueue-system" }}
- {name: PLACEMENT_AC_KUEUE_NAMESPACE, value: {{ .Values.kueue.namespace | quote }}}
{{- end }}
{{- with include "placement-ac.placementNamespaces" . }}
{{- if ne . "kueue-system" }}
- {name: PLACEMENT_AC_PLACEMENT_NAMESPACE, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "placement-ac.accessProviders" -}}
providers:
{{- if .Values.clusterProfiles.accessProviders }}
{{ toYaml .Values.clusterProfiles.accessProviders }}
{{- else }}
- name: open-cluster-management
  execConfig:
    apiVersion: client.authentication.k8s.io/v1
    command: /plugins/cp-creds
    args: [{{ print "--managed-serviceaccount=" .Values.credentials.account | quote }}]
    env:
    - {name: NAMESPACE, value: {{ .Values.kueue.namespace | quote }}}
    provideClusterInfo: true
    interactiveMode: Never
{{- end }}
{{- end }}
