package checks

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "write the rendered charts of testdata")

// minimal has only the required values of the chart.
const minimal = `
frontdoor: {keys: [{name: agent, hash: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}]}
approver: {keys: [{name: ann, groups: [ops], hash: "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]}
`

// everything enables all features of the chart.
const everything = `
nats: {tlsSecret: nats-tls}
frontdoor:
  keys: [{name: agent, groups: [agents], hash: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}]
  settings: {max_queue: 500}
  config: {limits: {servers: [{rate: 10}]}, traces: {endpoint: "http://collector:4318"}}
  tlsSecret: front-door-tls
  serviceAccount: {create: true, annotations: {iam: role}}
  ingress: {enabled: true, className: nginx, tlsSecret: ingress-tls}
approver:
  keys: [{name: ann, groups: [ops], hash: "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]
  settings: {observer_groups: [auditors]}
  tlsSecret: approver-tls
  ingress: {enabled: true, annotations: {a: b}}
worker:
  image: registry.example.com/worker-node:22
  settings: {sessions: 3}
  config: {warrants: {people_keys: [/run/secrets/other/approver.pub.pem]}}
  env: [{name: TOKEN, value: x}]
  volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
  volumeMounts: [{name: models, mountPath: /models}]
  nodeSelector: {pool: tools}
  tolerations: [{key: tools, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}}}
  priorityClassName: high
  podLabels: {team: tools}
  podAnnotations: {note: x}
  serviceAccount: {name: workers}
  keda: {enabled: true}
networkPolicy:
  callers: [{namespaceSelector: {}}]
  monitoring: [{podSelector: {}}]
  nats: [{podSelector: {matchLabels: {app: nats}}}]
  webPorts: [443, 8443]
  egress: {approver: [{ports: [{port: 25}]}]}
serviceMonitor: {enabled: true, keySecret: metrics}
`

func rendered(t *testing.T, values string) []object {
	t.Helper()
	all, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// onlyObject returns the only object of a role and a kind.
func onlyObject(t *testing.T, all []object, role, kind string) object {
	t.Helper()
	for _, o := range all {
		if o.role() == role && o.kind() == kind {
			return o
		}
	}
	t.Fatalf("%s has no %s", role, kind)
	return nil
}

func TestChartRefusesInvalidValues(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"front doors without keys":      {`approver: {keys: [{name: a, hash: "sha256:` + strings.Repeat("0", 64) + `"}]}`, "callyard keys new"},
		"an approver without sign-in":   {strings.Split(minimal, "approver:")[0], "approver has neither keys nor settings.oidc"},
		"scrapes without a key":         {minimal + "serviceMonitor: {enabled: true}", "serviceMonitor.keySecret"},
		"a misspelt value":              {minimal + "worker: {replica: 3}", "replica"},
		"a misspelt section":            {minimal + "workers: {replicas: 3}", "workers"},
		"a misspelt value of ingress":   {minimal + "networkPolicy: {caller: []}", "caller"},
		"a value of another type":       {minimal + "worker: {replicas: three}", "/worker/replicas"},
		"a plain key instead of a hash": {strings.Replace(minimal, "sha256:0", "cy_0", 1), "/frontdoor/keys/0/hash"},
	} {
		if _, err := render(t, c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error that names %q, got %v", name, c.want, err)
		}
	}
	oidc := strings.Split(minimal, "approver:")[0] + "approver: {settings: {oidc: {issuer: https://id.example.com, client_id: x}}}"
	if _, err := render(t, oidc); err != nil {
		t.Errorf("an approver with a provider and no keys: %v", err)
	}
}

func TestChartOmitsDisabledFeatures(t *testing.T) {
	for _, o := range rendered(t, minimal+"networkPolicy: {enabled: false}\n") {
		switch o.kind() {
		case "ScaledObject", "NetworkPolicy", "Ingress", "PodMonitor", "ServiceAccount":
			t.Errorf("%s has a %s", o.role(), o.kind())
		}
	}
	for _, o := range rendered(t, strings.Replace(minimal, "frontdoor: {", "frontdoor: {autoscaling: {enabled: false}, ", 1)) {
		// An upgrade must not reset the replicas that an autoscaler set.
		if o.kind() == "Deployment" && o.at("spec", "replicas") == nil {
			t.Errorf("%s has no number of replicas", o.role())
		}
	}
	for _, o := range rendered(t, everything) {
		if o.kind() == "Deployment" && o.role() != "approver" && o.at("spec", "replicas") != nil {
			t.Errorf("the size of %s is set, and scaled as well", o.role())
		}
	}
}

func TestChartHasResourcesOfEachRole(t *testing.T) {
	all := rendered(t, everything)
	for role, want := range map[string][]string{
		"frontdoor": {"ConfigMap", "ServiceAccount", "Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress", "NetworkPolicy", "PodMonitor"},
		"approver":  {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "Ingress", "NetworkPolicy", "PodMonitor"},
		"worker":    {"ConfigMap", "Deployment", "PodDisruptionBudget", "ScaledObject", "NetworkPolicy", "PodMonitor"},
	} {
		for _, kind := range want {
			onlyObject(t, all, role, kind)
		}
	}
	secrets := map[string][]string{"frontdoor": {"callyard-warrant-frontdoor"}, "approver": {"callyard-warrant-approver"}, "worker": {"callyard-warrant-public"}}
	for _, o := range all {
		if o.kind() != "Deployment" {
			continue
		}
		in := func(path ...any) any { return o.at(append([]any{"spec", "template", "spec"}, path...)...) }
		var scheme any
		if o.role() != "worker" { // with tlsSecret
			scheme = "HTTPS"
		}
		for what, got := range map[string][2]any{
			"scheme of readiness":    {in("containers", 0, "readinessProbe", "httpGet", "scheme"), scheme},
			"scheme of liveness":     {in("containers", 0, "livenessProbe", "httpGet", "scheme"), scheme},
			"a token of the API":     {in("automountServiceAccountToken"), false},
			"root":                   {in("securityContext", "runAsNonRoot"), true},
			"a writable file system": {in("containers", 0, "securityContext", "readOnlyRootFilesystem"), true},
			"escalation":             {in("containers", 0, "securityContext", "allowPrivilegeEscalation"), false},
			"capabilities":           {in("containers", 0, "securityContext", "capabilities", "drop", 0), "ALL"},
			"readiness":              {in("containers", 0, "readinessProbe", "httpGet", "path"), "/readyz"},
			"liveness":               {in("containers", 0, "livenessProbe", "httpGet", "path"), "/livez"},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: %s is %v, want %v", o.role(), what, got[0], got[1])
			}
		}
		volumes, _ := in("volumes").([]any)
		var found []string
		for _, v := range volumes {
			s := object(v.(map[string]any))
			if s.at("name") == "warrants" {
				found = append(found, fmt.Sprint(s.at("secret", "secretName")))
			}
			if s.at("name") == "nats" && s.at("secret", "items", 0, "key") != o.role() {
				t.Errorf("%s gets the NATS password of another role: %v", o.role(), s)
			}
		}
		if !slices.Equal(found, secrets[o.role()]) {
			t.Errorf("%s gets the warrant keys %v", o.role(), found)
		}
	}
}

// TestDefaultImagesAreThoseOfTheRelease: with the default values, pods pull what a release publishes.
func TestDefaultImagesAreThoseOfTheRelease(t *testing.T) {
	release := read(t, "../../.goreleaser.yaml")
	for _, o := range rendered(t, minimal) {
		if o.kind() != "Deployment" && o.kind() != "Job" {
			continue
		}
		image, _, _ := strings.Cut(fmt.Sprint(o.at("spec", "template", "spec", "containers", 0, "image")), ":")
		if !strings.Contains(release, "images: ["+image+"]") {
			t.Errorf("%s pulls %s, which .goreleaser.yaml does not publish", o.role(), image)
		}
	}
}

// TestAPersonStaysAtOneApprover: sessions of people are in the memory of one pod.
func TestAPersonStaysAtOneApprover(t *testing.T) {
	all := rendered(t, minimal)
	for role, want := range map[string]any{"approver": "ClientIP", "frontdoor": nil} {
		if got := onlyObject(t, all, role, "Service").at("spec", "sessionAffinity"); got != want {
			t.Errorf("the service of %s has the session affinity %v, want %v", role, got, want)
		}
	}
}

func TestOnlyInitJobCreatesStreamsBeforeRolesStart(t *testing.T) {
	all := rendered(t, everything)
	for _, o := range all {
		operator := strings.Contains(fmt.Sprint(o.at("spec")), "callyard-nats-operator")
		if operator != (o.kind() == "Job") {
			t.Errorf("the %s of %s has the password of the operator: %t", o.kind(), o.role(), operator)
		}
	}
	job := onlyObject(t, all, "init", "Job")
	in := func(path ...any) any { return job.at(append([]any{"spec", "template", "spec"}, path...)...) }
	for what, got := range map[string][2]any{
		"hook":                   {job.at("metadata", "annotations", "helm.sh/hook"), "pre-install,pre-upgrade"},
		"command":                {in("containers", 0, "args", 0), "init"},
		"image":                  {in("containers", 0, "image"), "ghcr.io/callyard/callyard:0.1.0"},
		"password":               {in("volumes", 0, "secret", "items", 0, "key"), "operator"},
		"certificate":            {in("volumes", 1, "secret", "secretName"), "nats-tls"},
		"a token of the API":     {in("automountServiceAccountToken"), false},
		"root":                   {in("securityContext", "runAsNonRoot"), true},
		"a writable file system": {in("containers", 0, "securityContext", "readOnlyRootFilesystem"), true},
		"escalation":             {in("containers", 0, "securityContext", "allowPrivilegeEscalation"), false},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %v, want %v", what, got[0], got[1])
		}
	}
}

func TestChartSetsSchedulingOfEachRole(t *testing.T) {
	all := rendered(t, everything)
	worker := onlyObject(t, all, "worker", "Deployment")
	in := func(path ...any) any { return worker.at(append([]any{"spec", "template"}, path...)...) }
	for what, got := range map[string][2]any{
		"image":           {in("spec", "containers", 0, "image"), "registry.example.com/worker-node:22"},
		"node selector":   {in("spec", "nodeSelector", "pool"), "tools"},
		"toleration":      {in("spec", "tolerations", 0, "key"), "tools"},
		"priority":        {in("spec", "priorityClassName"), "high"},
		"label":           {in("metadata", "labels", "team"), "tools"},
		"annotation":      {in("metadata", "annotations", "note"), "x"},
		"service account": {in("spec", "serviceAccountName"), "workers"},
	} {
		if got[0] != got[1] {
			t.Errorf("the %s of workers is %v, want %v", what, got[0], got[1])
		}
	}
	for _, list := range []string{"volumes", "affinity"} {
		if !strings.Contains(fmt.Sprint(in("spec", list)), map[string]string{"volumes": "models", "affinity": "pool"}[list]) {
			t.Errorf("the %s of workers are %v", list, in("spec", list))
		}
	}
	if !strings.Contains(fmt.Sprint(in("spec", "containers", 0, "volumeMounts")), "/models") {
		t.Error("the volume of workers is not mounted")
	}
	if image := onlyObject(t, all, "frontdoor", "Deployment").at("spec", "template", "spec", "containers", 0, "image"); image != "ghcr.io/callyard/frontdoor:0.1.0" {
		t.Errorf("the image of front doors is %v", image)
	}
	if name := onlyObject(t, all, "frontdoor", "Deployment").at("spec", "template", "spec", "serviceAccountName"); name != "cy-frontdoor" {
		t.Errorf("the service account of front doors is %v", name)
	}
}

func TestPodsGetTheTimeThatTheirDrainTakes(t *testing.T) {
	for values, want := range map[string]map[string]int{
		minimal: {"frontdoor": 50, "approver": 30, "worker": 75},
		strings.NewReplacer("frontdoor: {", "frontdoor: {drainDelay: 20, settings: {drain_grace: 1m30s}, ", "approver: {", "approver: {config: {approver: {drain_delay: 500ms, drain_grace: 1.5m}}, ").Replace(minimal) +
			"worker: {settings: {drain_grace: 1d1h}}\n": {"frontdoor": 120, "approver": 110, "worker": 90015},
	} {
		all := rendered(t, values)
		for role, seconds := range want {
			if got := onlyObject(t, all, role, "Deployment").at("spec", "template", "spec", "terminationGracePeriodSeconds"); fmt.Sprint(got) != fmt.Sprint(seconds) {
				t.Errorf("a pod of %s may take %v s to stop, want %d, with%s", role, got, seconds, values)
			}
		}
	}
}

func TestNetworkPoliciesAllowTracesAndWebhooks(t *testing.T) {
	all := rendered(t, everything)
	ports := func(role string) (found []string) {
		rules, _ := onlyObject(t, all, role, "NetworkPolicy").at("spec", "egress").([]any)
		for _, r := range rules {
			list, _ := object(r.(map[string]any)).at("ports").([]any)
			for _, p := range list {
				found = append(found, fmt.Sprint(object(p.(map[string]any)).at("port")))
			}
		}
		return found
	}
	for role, want := range map[string][]string{"frontdoor": {"53", "4222", "6379", "443", "8443", "4318"}, "approver": {"53", "4222", "443", "8443", "25"}} {
		for _, port := range want {
			if !slices.Contains(ports(role), port) {
				t.Errorf("%s may not reach port %s; its ports are %v", role, port, ports(role))
			}
		}
	}
	if slices.Contains(ports("approver"), "4318") {
		t.Error("the approver may reach the collector of front doors")
	}
}

func TestNetworkPoliciesAllowTheConfiguredPortsAndBothIPFamilies(t *testing.T) {
	all := rendered(t, minimal+`
nats: {url: "tls://nats-1:4223, nats-2:4224, nats-3"}
redis: {url: "rediss://user:p%40ss@redis.example.com:6380/0"}
`)
	policy := func(role string) string {
		text, err := yaml.Marshal(onlyObject(t, all, role, "NetworkPolicy").at("spec"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for role, want := range map[string][]string{
		"frontdoor": {"port: 4222\n", "port: 4223\n", "port: 4224\n", "port: 6379\n", "port: 26379\n", "port: 6380\n", "::/0"},
		"approver":  {"port: 4223\n", "port: 6380\n", "::/0", "port: metrics\n"}, // networkPolicy.monitoring is empty: everybody may
		"worker":    {"port: 4223\n", "port: 4224\n", "::/0", "fd00:ec2::/32"},
	} {
		for _, part := range want {
			if text := policy(role); !strings.Contains(text, part) {
				t.Errorf("the policy of %s does not have %q:\n%s", role, part, text)
			}
		}
	}
	if text := policy("worker"); strings.Contains(text, "6380") {
		t.Errorf("workers may reach Redis:\n%s", text)
	}
}

// config returns the configuration that the chart renders for a role.
func config(t *testing.T, all []object, role string) map[string]any {
	t.Helper()
	var c map[string]any
	text := fmt.Sprint(onlyObject(t, all, role, "ConfigMap").at("data", role+".yaml"))
	if err := yaml.UnmarshalWithOptions([]byte(text), &c, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v in\n%s", role, err, text)
	}
	return c
}

func TestChartMergesSettingsAndConfigByKey(t *testing.T) {
	all := rendered(t, everything)
	worker := object(config(t, all, "worker"))
	if got := fmt.Sprint(worker.at("warrants", "people_keys")); got != "[/run/secrets/other/approver.pub.pem]" {
		t.Errorf("worker.config does not win: %s", got)
	}
	if worker.at("warrants", "caller_keys", 0) != "/run/secrets/warrants/frontdoor.pub.pem" {
		t.Error("worker.config takes away what it does not name")
	}
	if fmt.Sprint(worker.at("worker", "sessions")) != "3" || worker.at("worker", "servers") != "/etc/callyard/servers.json" {
		t.Errorf("the section of workers is %v", worker["worker"])
	}
	if door := object(config(t, all, "frontdoor")); fmt.Sprint(door.at("front_door", "max_queue")) != "500" || door.at("front_door", "cert_file") == nil || door.at("nats", "ca_file") == nil {
		t.Errorf("the configuration of front doors is %v", door)
	}
}

func TestConfigChangeRestartsOnlyAffectedRoles(t *testing.T) {
	sums := func(values string) map[string]any {
		found := make(map[string]any)
		for _, o := range rendered(t, values) {
			if o.kind() == "Deployment" {
				found[o.role()] = o.at("spec", "template")
			}
		}
		return found
	}
	before := sums(minimal)
	for name, c := range map[string]struct {
		values string
		want   []string
	}{
		"replicas":             {minimal + "worker: {replicas: 9}\n", nil},
		"a network policy":     {minimal + "networkPolicy: {webPorts: [8443]}\n", nil},
		"the servers file":     {minimal + "servers: '{\"mcpServers\": {}}'\n", nil}, // pods reload files and keys without a restart
		"the policy":           {minimal + "policy: 'rules: []'\n", nil},
		"the API keys":         {strings.ReplaceAll(minimal, "keys: [{name: ", "keys: [{name: another-"), nil},
		"a setting":            {minimal + "worker: {settings: {sessions: 4}}\n", []string{"worker"}},
		"the address of Redis": {minimal + "redis: {url: redis://other:6379/0}\n", []string{"approver", "frontdoor"}},
	} {
		var rolled []string
		for role, pod := range sums(c.values) {
			if !reflect.DeepEqual(pod, before[role]) {
				rolled = append(rolled, role)
			}
		}
		slices.Sort(rolled)
		if !slices.Equal(rolled, c.want) {
			t.Errorf("%s rolls %v, want %v", name, rolled, c.want)
		}
	}
}

// TestTheAutoscalerCountsEachCallOnce evaluates the query of the chart while 5 calls wait
// for a slot. They count once, although they are both in flight and waiting.
func TestTheAutoscalerCountsEachCallOnce(t *testing.T) {
	query, _ := onlyObject(t, rendered(t, everything), "worker", "ScaledObject").at("spec", "triggers", 0, "metadata", "query").(string)
	f := openFleet(t)
	for range 5 {
		f.door.CallStarted()
	}
	f.run(scrapeEvery, func() { f.door.SetWaiting("files", 5, 0) })
	if v := f.ask(query); len(v) != 1 || v[0].F != 5 {
		t.Errorf("%s is %v, want 5", query, v)
	}
}

// TestRenderedChartMatchesTestdata compares the rendered chart of a small fleet with
// testdata, whose configurations package deploy runs as processes.
func TestRenderedChartMatchesTestdata(t *testing.T) {
	for values, path := range map[string]string{"testdata/values.yaml": "testdata/rendered.yaml", "testdata/approvals.yaml": "testdata/approvals-rendered.yaml"} {
		text := read(t, values)
		rendered(t, text)
		text, err := template(text)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if text != read(t, path) {
			t.Errorf("%s is not what the chart renders; write it with: go -C deploy/checks test . -update", path)
		}
	}
}
