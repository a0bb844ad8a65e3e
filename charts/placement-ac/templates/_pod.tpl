{{/* The parts that the controller's Pods and the test's have in common. */}}
{{- define "placement-ac.pod" -}}
serviceAccountName: {{ include "placement-ac.serviceAccountName" . | quote }}
automountServiceAccountToken: false # only the container that needs the token mounts it, below
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "placement-ac.mounts" -}}
- {name: config, mountPath: /etc/placement-ac, readOnly: true}
- {name: account, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}

{{- define "placement-ac.volumes" -}}
- name: config
  configMap: {name: {{ include "placement-ac.fullname" . | quote }}}
# The same files that Kubernetes mounts by default into every container of a Pod.
- name: account
  projected:
    sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3600}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}
{{- end }}
