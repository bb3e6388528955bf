package deploy_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// everything switches on all that the chart has.
const everything = `
nats: {tlsSecret: nats-tls}
frontdoor:
  keys: [{name: agent, groups: [agents], hash: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}]
  settings: {max_queue: 500}
  config: {limits: {servers: [{rate: 10}]}}
  tlsSecret: door-own-tls
  ingress: {enabled: true, className: nginx, tlsSecret: door-tls}
approver:
  keys: [{name: ann, groups: [ops], hash: "sha256:1111111111111111111111111111111111111111111111111111111111111111"}]
  settings: {observer_groups: [auditors]}
  tlsSecret: approver-own-tls
  ingress: {enabled: true, annotations: {a: b}}
worker:
  settings: {sessions: 3}
  env: [{name: TOKEN, value: x}]
  keda: {enabled: true}
networkPolicy:
  callers: [{namespaceSelector: {}}]
  monitoring: [{podSelector: {}}]
  nats: [{podSelector: {matchLabels: {app: nats}}}]
serviceMonitor: {enabled: true, keySecret: metrics}
`

func rendered(t *testing.T) []object {
	t.Helper()
	all, err := render(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheChartRefusesFrontDoorsWithoutKeys(t *testing.T) {
	if _, err := render(t, ""); err == nil || !strings.Contains(err.Error(), "callyard keys new") {
		t.Errorf("they are rendered: %v", err)
	}
}

func TestTheChartLeavesOutWhatIsSwitchedOff(t *testing.T) {
	all, err := render(t, "frontdoor: {keys: [{name: a}], autoscaling: {enabled: false}}\nnetworkPolicy: {enabled: false}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		switch o.kind() {
		case "HorizontalPodAutoscaler", "ScaledObject", "NetworkPolicy", "Ingress", "PodMonitor":
			t.Errorf("%s has a %s", o.role(), o.kind())
		case "Deployment":
			// Who scales a deployment must not find its size set again at each upgrade.
			if o.at("spec", "replicas") == nil {
				t.Errorf("%s has no number of replicas", o.role())
			}
		}
	}
	for _, o := range rendered(t) {
		if o.kind() == "Deployment" && o.role() != "approver" && o.at("spec", "replicas") != nil {
			t.Errorf("the size of %s is set, and scaled as well", o.role())
		}
	}
}

func TestTheChartHasWhatEachRoleNeeds(t *testing.T) {
	all := rendered(t)
	var kinds []string
	for _, o := range all {
		kinds = append(kinds, o.role()+" "+o.kind())
	}
	for role, want := range map[string][]string{
		"frontdoor": {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress", "NetworkPolicy", "PodMonitor"},
		"approver":  {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "Ingress", "NetworkPolicy"},
		"worker":    {"ConfigMap", "Deployment", "PodDisruptionBudget", "ScaledObject", "NetworkPolicy", "PodMonitor"},
	} {
		for _, kind := range want {
			if !slices.Contains(kinds, role+" "+kind) {
				t.Errorf("%s has no %s; there are %v", role, kind, kinds)
			}
		}
	}
	secrets := map[string][]string{"frontdoor": {"callyard-warrant-frontdoor"}, "approver": {"callyard-warrant-approver"}, "worker": {"callyard-warrant-public"}}
	for _, o := range all {
		if o.kind() != "Deployment" {
			continue
		}
		pod := []any{"spec", "template", "spec"}
		in := func(path ...any) any { return o.at(append(pod[:3:3], path...)...) }
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

func TestTheConfigurationsOfTheChartAreLoaded(t *testing.T) {
	secrets := exampleSecrets(t)
	for _, o := range rendered(t) {
		if o.kind() != "ConfigMap" {
			continue
		}
		t.Run(o.role(), func(t *testing.T) {
			dir := t.TempDir()
			data, _ := o.at("data").(map[string]any)
			if tls := strings.Contains(fmt.Sprint(data), "cert_file: /run/secrets/tls/tls.crt"); tls != (o.role() != "worker") {
				t.Errorf("it serves TLS: %v", tls)
			}
			for name, text := range data {
				// The paths are those of a pod; here they are elsewhere.
				write(t, filepath.Join(dir, name), strings.NewReplacer(
					"/etc/callyard/", dir+"/", "/run/secrets/warrants/key.pem", filepath.Join(secrets, "frontdoor.pem"), "/run/secrets/warrants/", secrets+"/",
					"/run/secrets/nats-tls/ca.crt", filepath.Join(secrets, "ca.pem"), "/run/secrets/nats-tls/tls.crt", filepath.Join(secrets, "tls.pem"), "/run/secrets/nats-tls/tls.key", filepath.Join(secrets, "tls-key.pem"),
					"/run/secrets/tls/tls.crt", filepath.Join(secrets, "tls.pem"), "/run/secrets/tls/tls.key", filepath.Join(secrets, "tls-key.pem"),
					"\"/demo\"", fmt.Sprintf("%q", built(t, "demo")),
				).Replace(fmt.Sprint(text)))
			}
			cmd := exec.Command(built(t, "callyard"), "config", "check", "--config", filepath.Join(dir, o.role()+".yaml"))
			cmd.Env = environment()
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "The configuration is good") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
