{{/* Roles and rules, as in config/. tests/install/test_install.py checks that each rule is needed, and none missing. */}}

{{/* The roles: the suffix of the name, the namespace (without: cluster-wide), the rules below, and whether nothing binds
them. */}}
{{- define "placement-ac.roles" -}}
{{- $kueue := .Values.kueue.namespace }}
{{- $lease := get .Values.config "leader-elect-resource-namespace" | default $kueue -}}
- {suffix: "", rules: [hub]}
- {suffix: -viewer, rules: [viewer], unbound: true}
- {suffix: -job-viewer, rules: [job-viewer], unbound: true}
- {suffix: -job-viewer-namespace, rules: [job-viewer-namespace], unbound: true}
- {suffix: -drain, rules: [drain], unbound: true}
{{- $viewer := dict }}
{{- range list (list .Release.Namespace "viewer-settings") (list $kueue "viewer-kueue") (list $lease "viewer-lease") (list "default" "viewer-events") }}
{{- $_ := set $viewer (first .) (append (get $viewer (first .) | default list) (last .)) }}
{{- end }}
{{- range $namespace, $rules := $viewer }}
- {suffix: -viewer, namespace: {{ $namespace | quote }}, rules: [{{ join ", " $rules }}], unbound: true}
{{- end }}
- {suffix: "", namespace: {{ $kueue | quote }}, rules: [kueue{{ if eq $lease $kueue }}, lease{{ end }}]}
{{- if ne $lease $kueue }}
- {suffix: -lease, namespace: {{ $lease | quote }}, rules: [lease]}
{{- end }}
- {suffix: -capacity, namespace: {{ $lease | quote }}, rules: [capacity]}
- {suffix: -capacity-viewer, namespace: {{ $lease | quote }}, rules: [capacity-viewer], unbound: true}
{{- range include "placement-ac.placementNamespaces" . | splitList "," }}
- {suffix: -placements, namespace: {{ . | quote }}, rules: [placements]}
{{- end }}
{{- if .Values.probing.enabled }}
- {suffix: -probe, namespace: {{ $kueue | quote }}, rules: [release]}
{{- end }}
{{- if .Values.workerSetup.enabled }}
- {suffix: -worker-setup, rules: [worker-setup]}
- {suffix: -worker-setup, namespace: {{ $kueue | quote }}, rules: [templates]}
{{- end }}
{{- if .Values.scores.enabled }}
- {suffix: -scores, rules: [scores]}
{{- end }}
{{- if .Values.credentials.provision }}
- {suffix: -provisioning, rules: [provisioning]}
- {suffix: -provisioning, namespace: {{ $kueue | quote }}, rules: [release]}
{{- end }}
{{- if or .Values.rbac.keepKubeconfigs (and .Values.credentials.provision (ne .Values.credentials.form "cluster-profile")) }}
- {suffix: -kubeconfigs, namespace: {{ $kueue | quote }}, rules: [kubeconfigs]}
{{- end }}
{{- if .Values.clusterProfiles.enabled }}
- {suffix: -cluster-profile, namespace: {{ $kueue | quote }}, rules: [cluster-profile]}
{{- end }}
{{- end }}

{{/* Cluster-wide: kinds without a namespace, and kinds in every user's or cluster's namespace. */}}
{{- define "placement-ac.rules.hub" -}}
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks]
  verbs: [list, watch]
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks/status]
  verbs: [patch]
- apiGroups: [kueue.x-k8s.io]
  resources: [multikueueconfigs, multikueueclusters]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [patch]
# While a CapacityProvider is ours, the queues are followed, too.
- apiGroups: [kueue.x-k8s.io]
  resources: [capacityproviders, clusterqueues, localqueues]
  verbs: [list, watch]
- apiGroups: [kueue.x-k8s.io]
  resources: [capacityproviders/status]
  verbs: [patch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [addonplacementscores, managedclusters]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* In Kueue's namespace: the workers' credentials, and the origin and the feature gates in Kueue's configuration. */}}
{{- define "placement-ac.rules.kueue" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [kueue-manager-config]
  verbs: [get]
- apiGroups: [multicluster.x-k8s.io]
  resources: [clusterprofiles]
  verbs: [list, watch]
{{- end }}

{{/* In the Lease's namespace: the Lease that decides which replica writes. */}}
{{- define "placement-ac.rules.lease" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ get .Values.config "leader-elect-resource-name" | default "placement-ac" | quote }}]
  verbs: [get, watch, update]
{{- end }}

{{/* In the Lease's namespace: the ConfigMaps with the capacity of the workers. An apply that creates one is a right to
create that name. */}}
{{- define "placement-ac.rules.capacity" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [placement-ac-capacity, placement-ac-capacity-queues]
  verbs: [create, patch]
{{- end }}

{{/* For users: the totals of the clusters, without their queues. */}}
{{- define "placement-ac.rules.capacity-viewer" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [placement-ac-capacity]
  verbs: [get]
{{- end }}

{{- define "placement-ac.rules.placements" -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [placements, placementdecisions]
  verbs: [list, watch]
{{- end }}

{{/* ManifestWorks in the namespaces of the clusters (a right to create cannot be limited to a name), and the flavors
that workers get. */}}
{{- define "placement-ac.rules.worker-setup" -}}
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  verbs: [create]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  resourceNames: [placement-ac-queues]
  verbs: [list, watch, patch, delete]
- apiGroups: [kueue.x-k8s.io]
  resources: [resourceflavors]
  verbs: [list, watch]
{{- end }}

{{/* Scores in the namespaces of the clusters; a right to create cannot be limited to a name. */}}
{{- define "placement-ac.rules.scores" -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [addonplacementscores]
  verbs: [create]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [addonplacementscores, addonplacementscores/status]
  resourceNames: [placement-ac]
  verbs: [patch]
{{- end }}

{{/* In Kueue's namespace: the templates of queues on workers. */}}
{{- define "placement-ac.rules.templates" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
{{- end }}

{{/* To find Kueue's release, which decides with its feature gates which rights are probed and granted. */}}
{{- define "placement-ac.rules.release" -}}
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [kueue-controller-manager]
  verbs: [get]
{{- end }}

{{/* The Secrets are the tokens that OCM reports in the namespaces of the clusters: the controller's and the
kueue-addon's. */}}
{{- define "placement-ac.rules.provisioning" -}}
- apiGroups: [authentication.open-cluster-management.io]
  resources: [managedserviceaccounts]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [rbac.open-cluster-management.io]
  resources: [clusterpermissions]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ .Values.credentials.account | quote }}, multikueue]
  verbs: [list, watch]
{{- end }}

{{/* Tokens become kubeconfigs, in Secrets. */}}
{{- define "placement-ac.rules.kubeconfigs" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, patch, delete]
{{- end }}

{{/* To read a ClusterProfile again for the plugin, before a worker is asked. */}}
{{- define "placement-ac.rules.cluster-profile" -}}
- apiGroups: [multicluster.x-k8s.io]
  resources: [clusterprofiles]
  verbs: [get]
{{- end }}

{{/* For users, not for the controller: what the commands that only read need, to be bound by an admin. These roles
give no Secrets, of ConfigMaps and Leases only those of the controller and of Kueue, and Events in one namespace. */}}
{{- define "placement-ac.rules.viewer" -}}
- apiGroups: [kueue.x-k8s.io]
  resources:
  - admissionchecks
  - clusterqueues
  - localqueues
  - multikueueclusters
  - multikueueconfigs
  - resourceflavors
  - workloads
  verbs: [get, list, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources:
  - addonplacementscores
  - managedclusters
  - managedclustersetbindings
  - managedclustersets
  - placementdecisions
  - placements
  verbs: [get, list, watch]
- apiGroups: [multicluster.x-k8s.io]
  resources: [clusterprofiles]
  verbs: [get, list, watch]
- apiGroups: [authentication.open-cluster-management.io]
  resources: [managedserviceaccounts]
  verbs: [get, list, watch]
- apiGroups: [rbac.open-cluster-management.io]
  resources: [clusterpermissions]
  verbs: [get, list, watch]
- apiGroups: [work.open-cluster-management.io]
  resources: [manifestworks]
  resourceNames: [placement-ac-queues]
  verbs: [get, list, watch]
# The controller, another one in any namespace, and Kueue.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch]
# doctor: the served versions, and the rights of the controller and of Kueue.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles, clusterrolebindings]
  verbs: [get, list, watch]
{{- end }}

{{/* For owners of jobs, not for the controller: what the commands about one job read on the hub, to be bound by an admin:
the first everywhere, the second in the namespaces of their jobs. No Secrets. */}}
{{- define "placement-ac.rules.job-viewer" -}}
- apiGroups: [kueue.x-k8s.io]
  resources: [multikueueclusters]
  verbs: [get, list, watch]
- apiGroups: [kueue.x-k8s.io]
  resources: [admissionchecks, clusterqueues]
  verbs: [list, watch]
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  verbs: [get]
- apiGroups: [multicluster.x-k8s.io]
  resources: [clusterprofiles]
  verbs: [get]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [placement-ac-capacity]
  verbs: [get]
{{- end }}

{{- define "placement-ac.rules.job-viewer-namespace" -}}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch]
- apiGroups: [kueue.x-k8s.io]
  resources: [localqueues]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
{{- end }}

{{/* For admins, not for the controller: who announces the maintenance of a cluster, to be bound by an admin. */}}
{{- define "placement-ac.rules.drain" -}}
- apiGroups: [cluster.open-cluster-management.io]
  resources: [managedclusters]
  verbs: [get, patch]
{{- end }}

{{- define "placement-ac.rules.viewer-settings" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "placement-ac.fullname" . | quote }}]
  verbs: [get, list, watch]
{{- end }}

{{- define "placement-ac.rules.viewer-kueue" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [kueue-manager-config]
  verbs: [get, list, watch]
{{- end }}

{{- define "placement-ac.rules.viewer-lease" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ get .Values.config "leader-elect-resource-name" | default "placement-ac" | quote }}]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [placement-ac-capacity, placement-ac-capacity-queues]
  verbs: [get, list, watch]
{{- end }}

{{/* The controller's events on AdmissionChecks, which have no namespace. */}}
{{- define "placement-ac.rules.viewer-events" -}}
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, watch]
{{- end }}
