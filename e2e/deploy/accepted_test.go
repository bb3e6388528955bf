package deploy_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/oidc/oidctest"
	"github.com/callyard/callyard/internal/approver/slack/slacktest"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// acceptable are configurations that config check accepts, by section. Each section has
// several variants, which rounds combine. ADDRESS, FOLDER and similar words are placeholders.
var acceptable = map[string][]string{
	"region":   {"", "eu-west"},
	"log":      {"", "{level: debug, format: json}", "{level: error, format: text}"},
	"traces":   {"", "{endpoint: 'http://127.0.0.1:1', timeout: 1s, ratio: 0.5, batch_ratio: 0, baggage: true}", "{endpoint: 'https://127.0.0.1:1', headers: {authorization: secret}, ca_file: FOLDER/ca.pem}"},
	"nats":     {"{url: 'NATS'}", "{url: 'NATS,NATS', replicas: 1}", "{url: 'NATS', listen: '127.0.0.1:0'}"},
	"redis":    {"", "{url: 'redis://REDIS/0'}", "{addresses: ['REDIS']}"},
	"warrants": {"", "{key_file: FOLDER/signs.pem, people_keys: [FOLDER/signs.pub.pem], caller_keys: [FOLDER/signs.pub.pem], standing_keys: [FOLDER/signs.pub.pem]}"},
	"webhooks": {"", "{secrets_file: FOLDER/hooks, allow_private: true, allowed_hosts: [hooks.example.com, '*.example.org', 'a.example:8443']}"},
	"limits": {"", `
  principals:
    - {names: ["ci-*"], rate: 50, burst: 100, in_flight: 20, queued: 100000, batches: 5}
    - {groups: [guests], rate: 0.5, in_flight: 1}
  servers:
    - {servers: ["d*"], rate: 1000}`},
	"cache": {"", "{memory_bytes: 16MiB, entry_bytes: 16MiB}"},
	"front_door": {
		"{listen: 'DOOR'}",
		"{listen: 'DOOR', cert_file: FOLDER/cert.pem, key_file: FOLDER/key.pem, keys: [{name: ci, owner: team, groups: [dev], hash: 'HASH', expires: 2030-01-01T00:00:00Z}]}",
		"{listen: 'DOOR', add_servers: true, argument_bytes: 8MiB, argument_depth: 8, call_timeout: 20s, max_timeout: 7d, max_queue: 1, max_wait: 1s, worker_wait: 0s, batches_yield: false, open_batches: 1, principal_in_flight: 1}",
		"{listen: 'DOOR', origins: ['https://app.example.com', 'http://localhost:3000'], approver_url: 'https://approve.example.com', drain_delay: 0s, drain_grace: 20s, keys: [{name: old, hash: 'HASH', expires: 2020-01-01T00:00:00Z}]}",
	},
	"approver": {
		"{listen: 'DESK', local_groups: [ops]}",
		"{listen: 'DESK', cert_file: FOLDER/cert.pem, key_file: FOLDER/key.pem, public_url: 'https://approve.example.com', keys: [{name: ann, groups: [ops], hash: 'HASH'}], observer_groups: [auditors], session_lifetime: 1h, session_idle: 5m, fresh_sign_in: 1m, argument_bytes: 64KiB}",
		"{listen: 'DESK', public_url: 'https://approve.example.com', oidc: {issuer: 'ISSUER', client_id: a, client_secret_file: FOLDER/secret, scopes: [email, groups], group_map: {a: [ops]}, email_domains: [example.com]}}",
		"{listen: 'DESK', keys: [{name: ann, groups: [ops], hash: 'HASH'}], slack: {bot_token_file: FOLDER/bot, signing_secret_file: FOLDER/secret, team_id: T0000TEST, app_id: A0000TEST, channels: {ops: C0000TEST}, default_channel: C0000TEST, max_level: 3, deny_reasons: ['no'], api_url: 'SLACK'}}",
		"{listen: 'DESK', keys: [{name: ann, groups: [ops], hash: 'HASH'}], slack: {bot_token: xoxb-1-a, app_token: xapp-1-a, team_id: T0000TEST, app_id: A0000TEST, default_channel: C0000TEST, api_url: 'SLACK'}, notify: {urls: ['https://hooks.example.com/a'], secrets_file: FOLDER/hooks, events: [approval.asked], allowed_hosts: [hooks.example.com]}}",
	},
	"worker": {
		"{listen: 'WORK'}",
		"{name: w-1, listen: 'WORK', labels: {zone: a}, api_servers: true, sessions: 3, in_flight: 1, call_timeout: 1ms, start_timeout: 1m, result_bytes: 1KiB, drain_grace: 20s}",
		"{listen: 'WORK', sandboxes: {engine: 'unix:///no/such/engine.sock', containers: 2, warm: 1, starts: 1}}",
	},
	"servers": {
		`{"mcpServers": {"demo": {"command": "DEMO"}}}`,
		`{"mcpServers": {"demo": {"command": "DEMO", "riskLevel": 2, "sessions": 2, "inFlight": 1, "timeout": "1s", "startTimeout": "10s", "idleStop": "1m", "asks": true, "trustAnnotations": true, "safeTools": ["e*"], "env": {"A": "b"}, "cwd": "/tmp"}}}`,
		`{"mcpServers": {"demo": {"command": "DEMO", "docker": {"image": "callyard/demo:local", "volumes": ["/tmp:/data:ro"], "network": "none", "memory": 268435456, "pool": 1}}}}`,
		`{"mcpServers": {"demo": {"command": "DEMO", "onDemand": true, "labels": {"zone": "a"}}, "away": {"url": "http://127.0.0.1:1/mcp", "auth": {"bearer": "x"}}, "off": {"command": "no-such-program", "disabled": true}}}`,
		`{"servers": {"demo": {"type": "stdio", "command": "DEMO", "riskLevel": 3, "docker": {"image": "callyard/demo:local"}}}}`,
	},
	"policy": {
		"",
		"annotations: ignore\nrules:\n  - {name: a, match: {server: 'de*', tool: [echo, add]}, when: 'has(args.x) && args.x > 5', level: 1, cache: {ttl: 1m, scope: shared}}\n",
		"rules:\n  - {name: people, match: {tool: big}, approval: {groups: [ops], reason_required: true, expires: 30d, escalate_to: [ops], escalate_after: 1h, slack_level: 2}}\n  - {name: own, match: {tool: fail}, approval: {by: caller}}\n",
		"approval: {default: {groups: [ops], fresh_login: true}}\nrules:\n  - {name: sandboxed, match: {server: demo}, sandbox: container, durable: true, reason: it is strange}\n  - {name: never, match: {method: resources/read}, deny: no}\n",
	},
}

// Each round takes the next variant of each section; the combinations differ each time the variants
// repeat.
const acceptedRounds = 9

// TestEveryRoleStartsWithConfigAcceptedByCheck starts every role, and `callyard up`, with
// configurations that config check accepts, for all sections.
func TestEveryRoleStartsWithConfigAcceptedByCheck(t *testing.T) {
	_, nats := startNATS(t, natsFile(t, "nats-server.conf"))
	provision(t, "nats://"+nats)
	folder := t.TempDir()
	ca, cert, certKey := certificates(t)
	for name, from := range map[string]string{"ca.pem": ca, "cert.pem": cert, "key.pem": certKey} {
		write(t, filepath.Join(folder, name), read(t, from))
	}
	write(t, filepath.Join(folder, "hooks"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	write(t, filepath.Join(folder, "secret"), "a secret\n")
	write(t, filepath.Join(folder, "bot"), slacktest.BotToken+"\n")
	if out, err := exec.Command(built(t, "callyard"), "keys", "warrant", filepath.Join(folder, "signs")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	slack, provider := slacktest.Start(t), oidctest.Start(t)
	redis := confirmtest.StartRedis(t, "", porttest.Address(t)).Address
	sections := slices.Sorted(maps.Keys(acceptable))
	used := map[string]map[int]bool{}
	for round := range acceptedRounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			a := accepted{t: t, door: porttest.Address(t), desk: porttest.Address(t), work: porttest.Address(t), file: filepath.Join(t.TempDir(), "callyard.yaml")}
			fill := strings.NewReplacer("NATS", "nats://"+nats, "REDIS", redis, "FOLDER", folder, "DOOR", a.door, "DESK", a.desk, "WORK", a.work,
				"DEMO", built(t, "demo"), "ISSUER", provider.Issuer, "SLACK", slack.URL, "HASH", hash("X-API-Key: a"))
			var text strings.Builder
			for i, section := range sections {
				variants := acceptable[section]
				n := (round + i*(round/len(variants))) % len(variants)
				if used[section] == nil {
					used[section] = map[int]bool{}
				}
				used[section][n] = true
				switch value := fill.Replace(variants[n]); {
				case section == "servers":
					path := filepath.Join(filepath.Dir(a.file), "servers.json")
					write(t, path, value)
					a.flags = append(a.flags, "--servers", path)
				case section == "policy" && value != "":
					path := filepath.Join(filepath.Dir(a.file), "policy.yaml")
					write(t, path, value)
					fmt.Fprintf(&text, "policy: %s\n", path)
				case value != "":
					fmt.Fprintf(&text, "%s: %s\n", section, value)
				}
			}
			write(t, a.file, text.String())
			a.text = text.String()
			a.accept()
			for _, role := range []string{"frontdoor", "approver", "worker"} {
				a.starts(built(t, role), role, nil, "CALLYARD_NATS_USER="+role, "CALLYARD_NATS_PASSWORD="+role)
			}
			a.starts(built(t, "callyard"), "up", []string{"up", "--data", t.TempDir()})
		})
	}
	for _, section := range sections {
		if len(used[section]) != len(acceptable[section]) {
			t.Errorf("of %s only %v were tried", section, used[section])
		}
	}
}

// accepted is one configuration.
type accepted struct {
	t                *testing.T
	text, file       string
	door, desk, work string
	flags            []string // of the worker
}

func (a *accepted) accept() {
	a.t.Helper()
	cmd := exec.CommandContext(a.t.Context(), built(a.t, "callyard"), append([]string{"config", "check", "--config", a.file}, a.flags...)...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("The configuration is valid")) {
		a.t.Fatalf("config check does not accept\n%s\n%v %s", a.text, err, out)
	}
}

// starts starts a role, waits until it is ready, and stops it.
func (a *accepted) starts(program, role string, args []string, env ...string) {
	a.t.Helper()
	args = append(args, "--config", a.file)
	if role == "worker" || role == "up" {
		args = append(args, a.flags...)
	}
	p := start(a.t, append(env, "CALLYARD_FRONT_DOOR_DRAIN_DELAY=1ms", "CALLYARD_APPROVER_DRAIN_DELAY=1ms"), program, args...)
	for _, address := range map[string][]string{"frontdoor": {a.door}, "approver": {a.desk}, "worker": {a.work}, "up": {a.door, a.desk}}[role] {
		eventually(a.t, role+" being ready", func() error {
			if p.Ended() {
				a.t.Fatalf("config check accepts this, and the %s does not start:\n%s\n%s", role, a.text, p.out.String())
			}
			return ready(address)
		})
	}
	if text := p.out.String(); strings.Contains(text, "the configuration has a fault") || strings.Contains(text, "panic") {
		a.t.Errorf("config check accepts this, and the %s finds a fault:\n%s\n%s", role, a.text, text)
	}
	if err := p.stopped(); err != nil {
		a.t.Errorf("%v, with\n%s", err, a.text)
	}
}

// ready requests /readyz, with or without TLS.
func ready(address string) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var last error
	for _, scheme := range []string{"http", "https"} {
		resp, err := client.Get(scheme + "://" + address + "/readyz") // it has a timeout
		if err != nil {
			last = err
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		last = fmt.Errorf("%s answers %d", address, resp.StatusCode)
	}
	return last
}
