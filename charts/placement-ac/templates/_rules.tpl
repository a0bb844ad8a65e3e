{{/* Made by `make manifests` from the roles in config; not edited by hand. */}}
{{- define "placement-ac.rules.lease-capacity" -}}
- {apiGroups: [''], resources: [configmaps], resourceNames: [placement-ac-capacity, placement-ac-capacity-queues], verbs: [create, patch]}
{{- end }}
{{- define "placement-ac.rules.lease-capacity-viewer" -}}
- {apiGroups: [''], resources: [configmaps], resourceNames: [placement-ac-capacity], verbs: [get]}
{{- end }}
{{- define "placement-ac.rules.hub" -}}
- {apiGroups: [kueue.x-k8s.io], resources: [admissionchecks], verbs: [list, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [admissionchecks/status], verbs: [patch]}
- {apiGroups: [kueue.x-k8s.io], resources: [multikueueconfigs, multikueueclusters], verbs: [list, watch, create, patch, delete]}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads/status], verbs: [patch]}
- {apiGroups: [kueue.x-k8s.io], resources: [capacityproviders, clusterqueues, localqueues], verbs: [list, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [capacityproviders/status], verbs: [patch]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [addonplacementscores, managedclusters], verbs: [list, watch]}
- {apiGroups: [''], resources: [events], verbs: [create, patch]}
{{- end }}
{{- define "placement-ac.rules.hub-drain" -}}
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], verbs: [get, patch]}
{{- end }}
{{- define "placement-ac.rules.hub-job-viewer" -}}
- {apiGroups: [kueue.x-k8s.io], resources: [multikueueclusters], verbs: [get, list, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [admissionchecks, clusterqueues], verbs: [list, watch]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [managedclusters], verbs: [get]}
- {apiGroups: [multicluster.x-k8s.io], resources: [clusterprofiles], verbs: [get]}
- {apiGroups: [''], resources: [configmaps], resourceNames: [placement-ac-capacity], verbs: [get]}
{{- end }}
{{- define "placement-ac.rules.hub-job-viewer-namespace" -}}
- {apiGroups: [kueue.x-k8s.io], resources: [workloads], verbs: [get, list, watch]}
- {apiGroups: [kueue.x-k8s.io], resources: [localqueues], verbs: [list, watch]}
- {apiGroups: [''], resources: [events], verbs: [list, watch]}
{{- end }}
{{- define "placement-ac.rules.kueue" -}}
- {apiGroups: [''], resources: [secrets], verbs: [get, list, watch]}
- {apiGroups: [''], resources: [configmaps], resourceNames: [kueue-manager-config], verbs: [get]}
- {apiGroups: [multicluster.x-k8s.io], resources: [clusterprofiles], verbs: [list, watch]}
{{- end }}
{{- define "placement-ac.rules.lease" -}}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [{{ dig "leaderElection" "resourceName" "" .Values.config | default "placement-ac" | quote }}], verbs: [get, watch, update]}
{{- end }}
{{- define "placement-ac.rules.placements-placements" -}}
- {apiGroups: [cluster.open-cluster-management.io], resources: [placements, placementdecisions], verbs: [list, watch]}
{{- end }}
{{- define "placement-ac.rules.hub-viewer" -}}
- {apiGroups: [kueue.x-k8s.io], resources: [admissionchecks, clusterqueues, localqueues, multikueueclusters, multikueueconfigs, resourceflavors, workloads], verbs: [get, list, watch]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [addonplacementscores, managedclusters, managedclustersetbindings, managedclustersets, placementdecisions, placements], verbs: [get, list, watch]}
- {apiGroups: [multicluster.x-k8s.io], resources: [clusterprofiles], verbs: [get, list, watch]}
- {apiGroups: [authentication.open-cluster-management.io], resources: [managedserviceaccounts], verbs: [get, list, watch]}
- {apiGroups: [rbac.open-cluster-management.io], resources: [clusterpermissions], verbs: [get, list, watch]}
- {apiGroups: [work.open-cluster-management.io], resources: [manifestworks], resourceNames: [placement-ac-queues], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, clusterrolebindings], verbs: [get, list, watch]}
{{- end }}
{{- define "placement-ac.rules.release-viewer" -}}
- {apiGroups: [''], resources: [configmaps], resourceNames: [{{ include "placement-ac.fullname" . | quote }}], verbs: [get, list, watch]}
{{- end }}
{{- define "placement-ac.rules.kueue-viewer" -}}
- {apiGroups: [''], resources: [configmaps], resourceNames: [kueue-manager-config], verbs: [get, list, watch]}
{{- end }}
{{- define "placement-ac.rules.lease-viewer" -}}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [{{ dig "leaderElection" "resourceName" "" .Values.config | default "placement-ac" | quote }}], verbs: [get, list, watch]}
- {apiGroups: [''], resources: [configmaps], resourceNames: [placement-ac-capacity, placement-ac-capacity-queues], verbs: [get, list, watch]}
{{- end }}
{{- define "placement-ac.rules.default-viewer" -}}
- {apiGroups: [''], resources: [events], verbs: [get, list, watch]}
{{- end }}
{{- define "placement-ac.rules.kueue-cluster-profile" -}}
- {apiGroups: [multicluster.x-k8s.io], resources: [clusterprofiles], verbs: [get]}
{{- end }}
{{- define "placement-ac.rules.kueue-probe" -}}
- {apiGroups: [apps], resources: [deployments], resourceNames: [kueue-controller-manager], verbs: [get]}
{{- end }}
{{- define "placement-ac.rules.kueue-kubeconfigs" -}}
- {apiGroups: [''], resources: [secrets], verbs: [create, patch, delete]}
{{- end }}
{{- define "placement-ac.rules.hub-provisioning" -}}
- {apiGroups: [authentication.open-cluster-management.io], resources: [managedserviceaccounts], verbs: [list, watch, create, patch, delete]}
- {apiGroups: [rbac.open-cluster-management.io], resources: [clusterpermissions], verbs: [list, watch, create, patch, delete]}
- {apiGroups: [''], resources: [secrets], resourceNames: [{{ .Values.credentials.account | quote }}, multikueue], verbs: [list, watch]}
{{- end }}
{{- define "placement-ac.rules.kueue-provisioning" -}}
- {apiGroups: [apps], resources: [deployments], resourceNames: [kueue-controller-manager], verbs: [get]}
{{- end }}
{{- define "placement-ac.rules.hub-scores" -}}
- {apiGroups: [cluster.open-cluster-management.io], resources: [addonplacementscores], verbs: [create]}
- {apiGroups: [cluster.open-cluster-management.io], resources: [addonplacementscores, addonplacementscores/status], resourceNames: [placement-ac], verbs: [patch]}
{{- end }}
{{- define "placement-ac.rules.hub-worker-setup" -}}
- {apiGroups: [work.open-cluster-management.io], resources: [manifestworks], verbs: [create]}
- {apiGroups: [work.open-cluster-management.io], resources: [manifestworks], resourceNames: [placement-ac-queues], verbs: [list, watch, patch, delete]}
- {apiGroups: [kueue.x-k8s.io], resources: [resourceflavors], verbs: [list, watch]}
{{- end }}
{{- define "placement-ac.rules.kueue-worker-setup" -}}
- {apiGroups: [''], resources: [configmaps], verbs: [list, watch]}
{{- end }}
