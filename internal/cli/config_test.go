package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/authn"
)

// checked runs `callyard config check` and returns its output.
func checked(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := &cobra.Command{Use: "callyard", SilenceErrors: true, SilenceUsage: true}
	cmd.AddCommand(configCommand())
	var said bytes.Buffer
	cmd.SetOut(io.Discard)
	cmd.SetErr(&said)
	cmd.SetArgs(append([]string{"config", "check"}, args...))
	err := cmd.Execute()
	if err != nil {
		said.WriteString(err.Error())
	}
	return said.String(), err
}

// A mistake is one file with one fault, the line of the fault, and the expected words.
type configMistake struct {
	text, want string
	line       int
}

func configMistakes(t *testing.T, dir string) []configMistake {
	t.Helper()
	key, hash := authn.Generate()
	for name, text := range map[string]string{"text": "no certificate", "secrets": "whsec_short\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, none := filepath.Join(dir, "text"), filepath.Join(dir, "none")
	door := func(keys ...string) string {
		return "front_door:\n  keys:\n    - " + strings.Join(keys, "\n    - ") + "\n"
	}
	return []configMistake{
		{door("{name: a, hash: " + key + "}"), "is the key itself", 3},
		{door("{name: a, hash: 'sha256:12'}"), "64 hex digits", 3},
		{door("{name: a, hash: ''}"), "64 hex digits", 3},
		{door("{name: a, hash: '"+hash+"'}", "{name: a, hash: 'sha256:"+strings.Repeat("ab", 32)+"'}"), `"a" is used by another key`, 4},
		{door("{name: a, hash: '"+hash+"'}", "{name: b, hash: '"+hash+"'}"), `the hash of key "a"`, 4},
		{door("{name: local, hash: '" + hash + "'}"), "choose another", 3},
		{door("{hash: '" + hash + "'}"), "1 to 128 characters", 3},
		{door("{name: a, key: '" + hash + "'}"), "front_door.keys[0].key", 3},
		{door("{name: a, hash: '" + hash + "', expires: soon}"), "expires", 3},
		{"approver:\n  keys: [{name: a, hash: " + key + "}]\n", "approver.keys[0].hash", 2},
		{"front_door:\n  listn: 127.0.0.1:1\n", `did you mean "listen"`, 2},
		{"front_door:\n  listen: 127.0.0.1\n", "not a listen address", 2},
		{"front_door:\n  listen: 127.0.0.1:http2\n", "must end with a port from 0 to 65535", 2},
		{"front_door:\n  listen: 127.0.0.1:70000\n", "must end with a port from 0 to 65535", 2},
		{"front_door:\n  listen: 0.0.0.0:8080\n", "API keys", 2},
		{"front_door:\n  call_timeout: fast\n", "call_timeout", 2},
		{"front_door:\n  call_timeout: 30\n", "unit", 2},
		{"front_door:\n  call_timeout: 2h\n", "exceeds max_timeout", 2},
		{"front_door:\n  cert_file: " + text + "\n", "key_file", 2},
		{"front_door:\n  cert_file: " + text + "\n  key_file: " + text + "\n", "does not match its key_file", 2},
		{"front_door:\n  cert_file: " + none + "\n  key_file: " + none + "\n", "cannot be read", 2},
		{"front_door:\n  open_batches: 0\n", "greater than zero", 2},
		{"front_door:\n  principal_in_flight: -1\n", "negative", 2},
		{"front_door:\n  argument_bytes: lots\n", "argument_bytes", 2},
		{"approver:\n  listen: 0.0.0.0:8081\n", "no sign-in is required", 2},
		{"approver:\n  listen: nowhere\n", "not a listen address", 2},
		{"approver:\n  public_url: approve\n", "approve.example.com", 2},
		{"worker:\n  sessions: many\n", "worker.sessions", 2},
		{"worker:\n  sessions: 0\n", "between 1 and 1000", 2},
		{"worker:\n  start_timeout: 2h\n", "between", 2},
		{"worker:\n  name: a b\n", "without spaces", 2},
		{"worker:\n  listen: '9090'\n", "not a listen address", 2},
		{"worker:\n  label: {a: b}\n", `did you mean "labels"`, 2},
		{"log:\n  format: xml\n", "log.format", 2},
		{"nats:\n  url: http://127.0.0.1:4222\n", "nats://host:4222", 2},
		{"nats:\n  replicas: 9\n", "from 1 to 5", 2},
		{"nats:\n  ca_file: " + text + "\n", "no certificate", 2},
		{"nats:\n  credentials_file: " + none + "\n", "cannot be read", 2},
		{"nats:\n  listen: yes please\n", "not a listen address", 2},
		{"redis:\n  url: http://127.0.0.1\n", "redis.url", 2},
		{"redis:\n  url: redis://a\n  addresses: [b:1]\n", "keep one", 3},
		{"redis:\n  password_file: " + none + "\n", "cannot be read", 2},
		{"warrants:\n  key_file: " + none + "\n", "warrants.key_file", 2},
		{"warrants:\n  people_keys: [" + text + "]\n", "warrants.people_keys", 2},
		{"webhooks:\n  secrets_file: " + none + "\n", "cannot be read", 2},
		{"webhooks:\n  secrets_file: " + filepath.Join(dir, "secrets") + "\n", "no valid secret", 2},
		{"credentials:\n  key_file: " + none + "\n", "cannot be read", 2},
		{"credentials:\n  key_file: " + filepath.Join(dir, "secrets") + "\n", "is not a key: 32 random bytes in base64", 2},
		{"encryption:\n  key_file: " + filepath.Join(dir, "secrets") + "\n", "is not a key: 32 random bytes in base64", 2},
		{"traces:\n  endpoint: nowhere\n", "traces.endpoint", 2},
		{"data: " + text + "\n", "must be a folder", 1},
		{"frontdoor:\n  listen: 127.0.0.1:1\n", `did you mean "front_door"`, 1},
		{"front_door:\n\tlisten: 127.0.0.1:1\n", "", 2},
		{"front_door:\n  max_queue: 5\n  max_queue: 6\n", "occurs twice", 3},
	}
}

var serverMistakes = []configMistake{
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"no-such-program-here\"}}}", "is not in PATH", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"/no/such/program\"}}}", "no such file", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"/etc/passwd\"}}}", "is not executable", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"cwd\": \"/no/such/folder\"}}}", "does not exist", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"riskLevel\": 3}}}", "docker.image", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"riskLevel\": 4}}}", "not a risk level", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"riskLvl\": 3}}}", "riskLevel", 2},
	{"{\"mcpServers\": {\n\"x\": {\"url\": \"https://a.example/mcp\", \"riskLevel\": 3}}}", "riskLevel 3", 2},
	{"{\"mcpServers\": {\n\"x\": {\"args\": [\"a\"]}}}", "neither a command nor a url", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"startTimeout\": \"3h\"}}}", "startTimeout", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"sessions\": 0}}}", "from 1 to 1000", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"env\": {\"A\": \"${NOT_SET_ANYWHERE}\"}}}}", "NOT_SET_ANYWHERE", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"env\": {\"CALLYARD_REAPER\": \"1\"}}}}", "is reserved for Callyard", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\"},\n\"x\": {\"command\": \"true\"}}}", "occurs twice", 3},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\"}\n\"y\": {}}}", "", 3},
	{"{\n\"mcpServer\": {}}", `did you mean "mcpServers"`, 1},
	{"{\"mcpServers\": {\n\"x\": {\"url\": \"ftp://a\"}}}", "not an address of an HTTP server", 2},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"docker\": {\"image\": \"a\", \"network\": \"host\"}}}}", "", 2},
	{"{\"mcpServers\": {\n\"x\": {\"openapi\": \"/no/such/document.yaml\"}}}", "document", 2},
	{"{\"mcpServers\": {}}", "contains no server for this worker", 1},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"disabled\": true}}}", "contains no server for this worker", 1},
	{"{\"mcpServers\": {\n\"x\": {\"command\": \"true\", \"labels\": {\"zone\": \"b\"}}}}", "contains no server for this worker", 1},
	{"{\"mcpServers\": {\n\"a/b\": {\"command\": \"true\"}}}", "server name", 2},
}

var policyMistakes = []configMistake{
	{"rules:\n  - {name: a, level: 9}\n", "from 1 to 3", 2},
	{"rules:\n  - {name: a, levl: 2}\n", `did you mean "level"`, 2},
	{"rules:\n  - {name: a}\n", "no outcome", 2},
	{"rules:\n  - {name: a, deny: x}\n  - {name: a, deny: y}\n", "is already used", 3},
	{"rules:\n  - {name: a, when: 'args.amount >', level: 2}\n", "is incomplete", 2},
	{"rules:\n  - {name: a, when: 'args.x and args.y', level: 2}\n", "&&", 2},
	{"rules:\n  - {name: a, when: 'args.x = 5', level: 2}\n", "==", 2},
	{"rules:\n  - {name: a, when: 'tool > 5', level: 2}\n", "does not work between", 2},
	{"rules:\n  - {name: a, when: 'tool.startswith(\"x\")', level: 2}\n", "startsWith", 2},
	{"rules:\n  - {name: a, when: 'arg.x == 1', level: 2}\n", `did you mean "args"`, 2},
	{"rules:\n  - {name: a, when: 'size(tool)', level: 2}\n", "true or false", 2},
	{"rules:\n  - {name: a, when: '(args.x == 1', level: 2}\n", "is missing", 2},
	{"rules:\n  - {name: a, when: 'tool == \"x', level: 2}\n", "does not end", 2},
	{"rules:\n  - {name: a, approval: {groups: [nobody]}}\n", "can only expire", 2},
	{"rules:\n  - {name: a, approval: {groups: [ops], needed: 2}}\n", "can only expire", 2},
	{"rules:\n  - {name: a, approval: {needed: 2}}\n", "by groups", 2},
	{"approval:\n  default: {groups: [nobody]}\n", "can only expire", 2},
	{"rules:\n  - {name: a, match: {tool: '[a]'}, deny: x}\n", "pattern", 2},
	{"rule: []\n", `did you mean "rules"`, 1},
	{"rules:\n  - {name: a, approval: {groups: [ops], expires: 10}}\n", "unit", 2},
	{"rules:\n - name: a\n   deny: [x\n", "not valid YAML", 3},
}

// TestAllTypicalMistakesAreReportedWithLines combines each mistake with one in
// each of the other two files. One report must have them all.
func TestAllTypicalMistakesAreReportedWithLines(t *testing.T) {
	dir := t.TempDir()
	config, servers, policy := filepath.Join(dir, "callyard.yaml"), filepath.Join(dir, "mcp.json"), filepath.Join(dir, "policy.yaml")
	args := []string{"--config", config, "--servers", servers, "--policy", policy}
	const people = "approver:\n  local_groups: [ops]\n"
	standing := map[string]configMistake{
		config:  {"log:\n  level: loud\n" + people, "debug, info, warn or error", 2},
		servers: serverMistakes[0],
		policy:  policyMistakes[0],
	}
	mistakes := map[string][]configMistake{config: configMistakes(t, dir), servers: serverMistakes, policy: policyMistakes}
	n := 0
	for file, all := range mistakes {
		for _, m := range all {
			n++
			expect := map[string]configMistake{file: m}
			for other, fault := range standing {
				if other != file {
					expect[other] = fault
				}
			}
			for name, fault := range expect {
				if err := os.WriteFile(name, []byte(fault.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			said, err := checked(t, args...)
			if exitCode(err) != exitUsage {
				t.Errorf("%q is called good, or not: code %d\n%s", m.text, exitCode(err), said)
				continue
			}
			for name, fault := range expect {
				if !reportsAt(said, name, fault) {
					t.Errorf("next to %q, %s:%d with %q is not in\n%s", m.text, filepath.Base(name), fault.line, fault.want, said)
				}
			}
			if strings.Contains(said, "Syntax error") || strings.Contains(said, "NUM_FLOAT") {
				t.Errorf("the output of a parser is passed on: %s", said)
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d mistakes are tried", n)
	}
}

// reportsAt reports whether a line of the report names the file, the line and the fault.
func reportsAt(said, file string, m configMistake) bool {
	for line := range strings.Lines(said) {
		if at := strings.Index(line, file+":"); at >= 0 && strings.Contains(line, m.want) {
			rest := line[at+len(file)+1:]
			number, _, _ := strings.Cut(rest, ":")
			if number == strconv.Itoa(m.line) {
				return true
			}
		}
	}
	return false
}

func TestMissingFileIsReportedAtItsKey(t *testing.T) {
	config := filepath.Join(t.TempDir(), "callyard.yaml")
	if err := os.WriteFile(config, []byte("policy: /no/such/policy.yaml\nworker:\n  servers: /no/such/servers.json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := checked(t, "--config", config)
	if exitCode(err) != exitUsage || !reportsAt(said, config, configMistake{want: "policy: cannot be read", line: 1}) || !reportsAt(said, config, configMistake{want: "worker.servers: cannot be read", line: 3}) {
		t.Errorf("%v\n%s", err, said)
	}
}
