{{- define "callyard.labels" -}}
app.kubernetes.io/name: callyard
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "callyard.name" -}}
{{ printf "%s-%s" .root.Release.Name .role | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "callyard.meta" -}}
name: {{ include "callyard.name" . }}
labels:
  {{- include "callyard.labels" . | nindent 2 }}
{{- end }}

{{/* The pod: what all roles share, then what each has of its own. */}}
{{- define "callyard.pod" -}}
metadata:
  labels:
    {{- include "callyard.labels" . | nindent 4 }}
  annotations:
    callyard.dev/config: {{ toYaml .root.Values | sha256sum | quote }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .grace }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "callyard.labels" . | nindent 10 }}
  containers:
    - name: {{ .role }}
      image: {{ printf "%s/%s:%s" .root.Values.image.registry .role (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: ["--config", "/etc/callyard/{{ .role }}.yaml"]
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      env:
        - name: CALLYARD_NATS_PASSWORD_FILE
          value: /run/secrets/nats/password
        {{- with .values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - {name: http, containerPort: {{ .port }}}
      startupProbe:
        httpGet: {path: /livez, port: http{{ if .values.tlsSecret }}, scheme: HTTPS{{ end }}}
        periodSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet: {path: /livez, port: http{{ if .values.tlsSecret }}, scheme: HTTPS{{ end }}}
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http{{ if .values.tlsSecret }}, scheme: HTTPS{{ end }}}
        periodSeconds: 3
        failureThreshold: 2
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/callyard, readOnly: true}
        - {name: warrants, mountPath: /run/secrets/warrants, readOnly: true}
        - {name: nats, mountPath: /run/secrets/nats, readOnly: true}
        {{- if .root.Values.nats.tlsSecret }}
        - {name: nats-tls, mountPath: /run/secrets/nats-tls, readOnly: true}
        {{- end }}
        {{- if .values.tlsSecret }}
        - {name: tls, mountPath: /run/secrets/tls, readOnly: true}
        {{- end }}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: config
      configMap: {name: {{ include "callyard.name" . }}}
    - name: warrants
      secret: {secretName: {{ .warrants }}, defaultMode: 0440}
    - name: nats
      secret:
        secretName: {{ .root.Values.nats.passwordSecret }}
        defaultMode: 0440
        items: [{key: {{ .role }}, path: password}]
    {{- if .root.Values.nats.tlsSecret }}
    - name: nats-tls
      secret: {secretName: {{ .root.Values.nats.tlsSecret }}, defaultMode: 0440}
    {{- end }}
    {{- if .values.tlsSecret }}
    - name: tls
      secret: {secretName: {{ .values.tlsSecret }}, defaultMode: 0440}
    {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: 256Mi}
{{- end }}

{{- define "callyard.nats" -}}
nats:
  url: {{ .root.Values.nats.url | quote }}
  user: {{ .role }}
  {{- if ne .role "worker" }}
  replicas: {{ .root.Values.nats.replicas }}
  {{- end }}
  {{- if .root.Values.nats.tlsSecret }}
  ca_file: /run/secrets/nats-tls/ca.crt
  cert_file: /run/secrets/nats-tls/tls.crt
  key_file: /run/secrets/nats-tls/tls.key
  {{- end }}
{{- if and .root.Values.redis.url (ne .role "worker") }}
redis:
  url: {{ .root.Values.redis.url | quote }}
{{- end }}
{{- end }}

{{- define "callyard.tls" -}}
{{- if .values.tlsSecret }}
cert_file: /run/secrets/tls/tls.crt
key_file: /run/secrets/tls/tls.key
{{- end }}
{{- end }}

{{- define "callyard.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "callyard.meta" . | nindent 2 }}
spec:
  {{- toYaml .values.disruption | nindent 2 }}
  selector:
    matchLabels:
      {{- include "callyard.labels" . | nindent 6 }}
{{- end }}

{{- define "callyard.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "callyard.meta" . | nindent 2 }}
spec:
  type: {{ .values.service.type }}
  selector:
    {{- include "callyard.labels" . | nindent 4 }}
  ports:
    - {name: http, port: {{ .values.service.port }}, targetPort: http}
{{- end }}

{{- define "callyard.ingress" -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "callyard.meta" . | nindent 2 }}
  {{- with .values.ingress.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .values.ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with .values.ingress.tlsSecret }}
  tls:
    - hosts: [{{ $.values.ingress.host | quote }}]
      secretName: {{ . }}
  {{- end }}
  rules:
    - host: {{ .values.ingress.host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: {{ include "callyard.name" . }}, port: {name: http}}}
{{- end }}
