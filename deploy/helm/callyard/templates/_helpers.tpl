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

{{/* The pod: the fields of all roles, then those of one role. */}}
{{- define "callyard.pod" -}}
metadata:
  labels:
    {{- include "callyard.labels" . | nindent 4 }}
    {{- with .values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A pod restarts when its own configuration changes. It reloads the policy, the servers
    # file and the API keys while it runs.
    callyard.dev/config: {{ include "callyard.static" . | sha256sum | quote }}
    {{- with .values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "callyard.account" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "callyard.grace" . }}
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
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "callyard.labels" . | nindent 10 }}
  containers:
    - name: {{ .role }}
      image: {{ .values.image | default (printf "%s/%s:%s" .root.Values.image.registry .role (.root.Values.image.tag | default .root.Chart.AppVersion)) | quote }}
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
        {{- if eq .role "approver" }}
        - {name: metrics, containerPort: 9091}
        {{- end }}
      startupProbe:
        httpGet: {path: /livez, port: http{{ if .values.tlsSecret }}, scheme: HTTPS{{ end }}}
        periodSeconds: 2
        failureThreshold: 300  # reading very many approvals takes minutes
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
        {{- with .values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
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
    {{- with .values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* The seconds that a pod may take to stop: its drain_delay and drain_grace, wherever they are set,
and .reserve for the rest. */}}
{{- define "callyard.grace" -}}
{{- $section := get .config (ternary "front_door" .role (eq .role "frontdoor")) }}
{{- $sum := .reserve }}
{{- range list (get $section "drain_delay" | default .drainDelay) (get $section "drain_grace" | default .drainGrace) }}
{{- range regexFindAll "[0-9.]+(d|h|ms|m|s)" (toString .) -1 }}
{{- $unit := regexFind "[a-z]+" . }}
{{- $sum = addf $sum (mulf (float64 (trimSuffix $unit .)) (get (dict "d" 86400 "h" 3600 "m" 60 "s" 1 "ms" 0.001) $unit)) }}
{{- end }}
{{- end }}
{{- int (ceil $sum) }}
{{- end }}

{{/* Completes .config: the settings of all roles, then settings (the role's own section), then
config (any section). The last one wins, key by key. */}}
{{- define "callyard.complete" -}}
{{- $section := ternary "front_door" .role (eq .role "frontdoor") }}
{{- $nats := dict "url" .root.Values.nats.url "user" .role }}
{{- if ne .role "worker" }}{{ $_ := set $nats "replicas" (int .root.Values.nats.replicas) }}{{ end }}
{{- if .root.Values.nats.tlsSecret }}
{{- $_ := merge $nats (dict "ca_file" "/run/secrets/nats-tls/ca.crt" "cert_file" "/run/secrets/nats-tls/tls.crt" "key_file" "/run/secrets/nats-tls/tls.key") }}
{{- end }}
{{- $_ := merge .config (dict "log" (dict "format" "json") "nats" $nats) }}
{{- if and .root.Values.redis.url (ne .role "worker") }}
{{- $_ := set .config "redis" (dict "url" .root.Values.redis.url) }}
{{- end }}
{{- if .values.tlsSecret }}
{{- $_ := merge (get .config $section) (dict "cert_file" "/run/secrets/tls/tls.crt" "key_file" "/run/secrets/tls/tls.key") }}
{{- end }}
{{- $_ := mergeOverwrite .config (dict $section (deepCopy (.values.settings | default dict))) (deepCopy (.values.config | default dict)) }}
{{- end }}

{{- define "callyard.files" -}}
{{- range $name, $text := .files }}
{{ $name }}: {{ $text | quote }}
{{- end }}
{{ .role }}.yaml: |
  {{- toYaml .config | nindent 2 }}
{{- end }}

{{- define "callyard.static" -}}
{{- $static := deepCopy .config }}
{{- range $section := list "front_door" "approver" }}
{{- with get $static $section }}{{ $_ := unset . "keys" }}{{ end }}
{{- end }}
{{- toYaml $static }}
{{- end }}

{{- define "callyard.config" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "callyard.meta" . | nindent 2 }}
data:
  {{- include "callyard.files" . | nindent 2 }}
{{- if .values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "callyard.account" . }}
  labels:
    {{- include "callyard.labels" . | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{- define "callyard.account" -}}
{{- if .values.serviceAccount.create }}{{ .values.serviceAccount.name | default (include "callyard.name" .) }}{{ else }}{{ .values.serviceAccount.name | default "default" }}{{ end }}
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
  {{- with .values.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .values.service.type }}
  {{- if eq .role "approver" }}
  sessionAffinity: ClientIP # sessions of people are in the memory of one pod
  {{- end }}
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

{{/* The ports of a list of URLs, in addition to the usual ones, for a network policy. */}}
{{- define "callyard.ports" -}}
{{- $ports := .also }}
{{- range splitList "," .urls }}
{{- $url := trim . }}
{{- $host := (urlParse (ternary $url (printf "nats://%s" $url) (contains "://" $url))).host }}
{{- if regexMatch ":[0-9]+$" $host }}{{ $ports = append $ports (regexFind "[0-9]+$" $host) }}{{ end }}
{{- end }}
{{- $sep := "[" }}
{{- range uniq $ports }}{{ $sep }}{port: {{ . }}}{{ $sep = ", " }}{{ end }}]
{{- end }}

{{/* The port of a URL. */}}
{{- define "callyard.port" -}}
{{- $u := urlParse . }}
{{- $host := $u.host }}
{{- if regexMatch ":[0-9]+$" $host }}{{ regexFind "[0-9]+$" $host }}{{ else }}{{ ternary 443 80 (eq $u.scheme "https") }}{{ end }}
{{- end }}
