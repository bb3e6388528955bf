package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/callyard/callyard/internal/agent/modeltest"
	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// untilReady is shell text that waits until the front door has a callable server. Its tools
// are listed after it has been initialized.
const untilReady = `until curl -sS "$URL/servers" 2>&1 | grep -q '"tools":'; do sleep 0.1; done`

// evaluated are the files of docs/how-to/evaluate-tool-selection.md: one question and its answer,
// in each format.
var evaluated = map[string]string{
	"notes.txt":       "the notes\n",
	"questions.jsonl": `{"id":"1","category":"files","question":"Show me notes.txt.","tools":[{"name":"read","server":"filesystem","description":"Read a file"},{"name":"write","server":"filesystem"}],"target_tools":"read"}` + "\n",
	"answers.jsonl":   `{"id":"1","text":"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"notes.txt\"}}\n</tool_call>"}` + "\n",
	"filesystem_0723_single.json": `[{"uuid":"1","category":"filesystem","tools":[{"name":"read","description":"Read a file","input_schema":{"type":"object"}}],
"mcp_tools_dict":{"filesystem":["read"]},"query":"Show me notes.txt.",
"function_call_label":[{"name":"read","step":"1","id":"1","mcp_server":"filesystem","similar_tools":[],"input":{"path":"notes.txt"},"output":{}}]}]`,
	"bfcl_eval/data/BFCL_v4_live_multiple.json":                 `{"id":"1","question":[[{"role":"user","content":"Show me notes.txt."}]],"function":[{"name":"read","description":"Read a file","parameters":{"type":"dict","properties":{"path":{"type":"string"}},"required":["path"]}}]}` + "\n",
	"bfcl_eval/data/possible_answer/BFCL_v4_live_multiple.json": `{"id":"1","ground_truth":[{"read":{"path":["notes.txt"]}}]}` + "\n",
	"data/tau2/domains/airline/tasks.json":                      `[{"id":"1","user_scenario":{"instructions":"Show me notes.txt."},"evaluation_criteria":{"actions":[{"name":"read","arguments":{"path":"notes.txt"}}]}}]`,
}

var readerPages = []readerPage{
	{name: "CONTRIBUTING.md", given: func(r *reader) { r.dir = programs.root }, blocks: []readerBlock{{block: "make --dry-run unit"}}},
	{name: "docs/explanation/performance.md", given: func(r *reader) {
		withBench(r.t)
		withDemo(r)
		r.replace = append(r.replace, "make --dry-run", "make --dry-run -C "+programs.root)
	}, blocks: []readerBlock{
		{
			block: "callyard bench SERVER TOOL", replace: []string{"SERVER TOOL", "--url $CALLYARD_URL --quick --duration 50ms --warmup 10ms demo echo"},
			want: []string{`calls`},
		},
	}},
	{name: "docs/how-to/accept-access-tokens.md", given: func(r *reader) {
		issuer := tokentest.Start(r.t)
		r.has("callyard.yaml", fmt.Sprintf("front_door:\n  public_url: http://%s\n  issuers:\n    - name: corp\n      issuer: %s\n", r.door, issuer.URL))
		r.has("servers.json", demoServers)
		r.up("--servers", "servers.json", "--config", "callyard.yaml")
		r.set("TOKEN", issuer.Token(r.t, "ada", "http://"+r.door, "tools:read"))
	}, blocks: []readerBlock{
		{block: "Authorization: Bearer", replace: []string{"https://tools.example.com", "--fail-with-body $URL"}, want: []string{`"tools":\[`}},
	}},
	{name: "docs/how-to/add-servers.md", given: func(r *reader) { r.has("servers.json", demoServers) }, blocks: []readerBlock{
		{block: "callyard up --servers", serves: true, want: []string{`demo +ready`, `files +ready`}},
	}},
	{name: "docs/how-to/approvals.md", blocks: []readerBlock{
		{block: "callyard up --demo-approvals", serves: true, want: []string{`requester +demo-agent +key \S+`, `approver +ann +key \S+`}},
		{block: "/decisions", prepare: func(r *reader) { r.set("KEY", r.last(`approver +ann +key (\S+)`)) }, before: `
list=$(curl -sS --fail-with-body -H "X-API-Key: $KEY" "$CALLYARD_APPROVER_URL/approvals")
ID=$(grep -o 'appr_[a-z0-9]*' <<<"$list" | head -n 1)
DIGEST=$(curl -sS -H "X-API-Key: $KEY" "$CALLYARD_APPROVER_URL/approvals/$ID" | sed 's/.*"arguments_digest":"\([^"]*\)".*/\1/')`,
			replace: []string{"appr_…", `'$ID'`, "sha256:…", `'$DIGEST'`}, want: []string{`"status":20\d`}},
	}},
	{name: "docs/how-to/audit-approvals.md", blocks: []readerBlock{
		{
			// With the page's --data, for a stopped callyard up.
			block: "callyard audit list --call CALL_ID", before: `
callyard up --demo-approvals >up.log 2>&1 & PID=$!
until grep -q 'approver .*key' up.log; do sleep 0.1; done
export CALLYARD_KEY=$(sed -n 's/.*approver *ann *key \(\S*\).*/\1/p' up.log)
ID=$(callyard approvals --json | grep -o 'appr_[a-z0-9]*' | head -n 1)
callyard approve --yes "$ID"
CALL=$(curl -sS -H "X-API-Key: $CALLYARD_KEY" "$CALLYARD_APPROVER_URL/approvals/$ID" | grep -o 'call_[0-9][a-z0-9-]*' | head -n 1)
kill -TERM $PID
wait $PID`,
			replace: []string{"callyard audit ", "callyard audit --data callyard-data ", "CALL_ID", "$CALL", "--by ada", "--by ann"},
			want:    []string{`held +demo-agent`, `decided +ann .* approve`, `The audit log is intact`},
		},
	}},
	{name: "docs/how-to/batches.md", given: func(r *reader) {
		r.has("policy.yaml", holdsAdd)
		r.has("servers.json", demoServers)
		r.has("calls.ndjson", `{"custom_id":"1","server":"demo","tool":"echo","arguments":{"message":"one"}}`+"\n")
		r.up("--servers", "servers.json", "--policy", "policy.yaml").waitServers(r.t, 1, "demo")
	}, blocks: []readerBlock{
		{block: "callyard batch calls.ndjson", after: "cat results.ndjson", want: []string{`Echo: one`}},
		{
			block: "/confirmations", before: `
add='{"custom_id":"1","server":"demo","tool":"add","arguments":{"a":1,"b":2}}
{"custom_id":"2","server":"demo","tool":"add","arguments":{"a":3,"b":4}}'
BATCH=$(curl -sS --fail-with-body -H 'Content-Type: application/x-ndjson' --data-binary "$add" "$URL/batches" | sed 's/.*"id":"\(batch_[^"]*\)".*/\1/')
until curl -sS "$URL/batches/$BATCH" | grep -q '"held":2'; do sleep 0.05; done
CALLS=$(curl -sS "$URL/batches/$BATCH/held" | grep -o '"call_id":"[^"]*"' | cut -d: -f2 | paste -sd,)`,
			replace: []string{`"CALL_ID","CALL_ID"`, `'$CALLS'`}, after: `
until curl -sS "$URL/batches/$BATCH" | grep -q '"succeeded":2'; do sleep 0.05; done`,
			want: []string{`"by":"caller"`, `"accepted":2`},
		},
		{block: "callyard calls settle", before: makesUnknown + `
ID=$(unknown)
echo '{"call_id":"'$ID'","state":"unknown"}' >results.ndjson`, replace: []string{"CALL_ID", "$ID"}, after: `curl -sS "$URL/calls/$ID"`, want: []string{`"state":"succeeded"`}},
	}},
	{name: "docs/how-to/chaos.md", given: func(r *reader) { r.dir = programs.root }, blocks: []readerBlock{{block: "make --dry-run chaos", want: []string{`chaos`}}}},
	{name: "docs/how-to/check-required-tools.md", given: func(r *reader) { r.has("tools.txt", "demo/echo\n"); withDemo(r) }, blocks: []readerBlock{
		{block: "callyard check --require tools.txt", want: []string{`ready`}},
	}},
	{name: "docs/how-to/authenticate-to-servers.md", given: func(r *reader) { r.has("servers.json", demoServers) }, blocks: []readerBlock{{block: "callyard config check", want: []string{`# server demo`}}}},
	{name: "docs/how-to/console.md", blocks: []readerBlock{{block: "callyard up", serves: true, want: []string{"is up"}}}},
	{name: "docs/how-to/connect-trainers.md", given: withEnvironment, blocks: []readerBlock{
		{block: "callyard env --environments", serves: true, want: []string{`environments are served at`}},
		{block: "OPENREWARD_API_URL", after: `curl -sS --fail-with-body "$OPENREWARD_API_URL/list_environments"`, want: []string{`notes`}},
		{block: "make --dry-run trainers", replace: []string{"make --dry-run", "make --dry-run -C $TREE"}, want: []string{`trl`}},
	}},
	{name: "docs/how-to/containers.md", given: func(r *reader) {
		r.set("DOCKER_HOST", "unix:///nonexistent/engine.sock") // the containers themselves are tested elsewhere
		r.has("servers.json", `{"mcpServers": {"risky": {"command": "/demo", "riskLevel": 3, "docker": {"image": "callyard/demo:local"}}}}`)
	}, blocks: []readerBlock{
		{block: "callyard up --servers", serves: true, want: []string{`risky`, `is up`}},
	}},
	{name: "docs/how-to/drain-and-restart.md", blocks: []readerBlock{
		{block: "kill -TERM PID", before: "callyard up >up.log 2>&1 &\nPID=$!\n" + untilReady, replace: []string{"TERM PID", "TERM $PID"}, after: "wait $PID"},
	}},
	{name: "docs/how-to/durable-calls.md", given: receives, blocks: []readerBlock{{block: "callback_url", want: []string{`"id":"call_`}, after: untilCalled}}},
	{name: "docs/how-to/evaluate-tool-selection.md", given: func(r *reader) {
		for name, text := range evaluated {
			r.has(name, text)
		}
		answersWith(r, modeltest.Turn{Calls: []modeltest.Call{{ID: "a", Name: "read", Arguments: `{"path":"notes.txt"}`}}})
		withBench(r.t)
		withDemo(r)
	}, blocks: []readerBlock{
		{block: "--data jsonl:questions.jsonl", want: []string{`published`, `F1`}},
		{block: "--data mcptoolbench:", replace: []string{"run/ --data mcptoolbench", "run-mcp/ --data mcptoolbench", "run/ --data bfcl", "run-bfcl/ --data bfcl"}, want: []string{`F1`}},
		{block: "--model ollama:qwen3 --trials 4", before: "rm -r run", replace: []string{"ollama:qwen3", "ollama:qwen3 --base-url $MODEL"}, want: []string{`4 answers`, `F1`}},
		{block: "callyard eval score run/", want: []string{`F1`}},
		{block: "--execute label", before: "rm -r run", want: []string{`1`}},
		{block: "--execute all", before: "rm -r run\ncallyard eval score run/ --data mcptoolbench:filesystem_0723_single.json --responses answers.jsonl", want: []string{`execution-1`}},
		{block: "--data tau2:", before: "rm -r run", replace: []string{"airline/reset", "airline/list", "airline/state", "airline/tree"}},
		{block: "callyard eval compare", before: "for run in a b; do callyard eval score run-$run/ --data jsonl:questions.jsonl --responses answers.jsonl; done", want: []string{`DETECTABLE`}},
		{block: "callyard eval report", after: "ls report.html charts/table.png"},
	}},
	{name: "docs/how-to/hold-risky-calls.md", given: func(r *reader) {
		r.has("policy.yaml", holdsAdd)
		r.has("calls.yaml", "- {server: demo, tool: add, arguments: {a: 1, b: 2}, expect: {approval: caller}}\n")
	}, blocks: []readerBlock{{block: "callyard up --policy", serves: true, want: []string{`additions`, `is up`}}}},
	{name: "docs/how-to/limit-callers.md", given: func(r *reader) {
		r.has("callyard.yaml", "limits:\n  principals:\n    - {names: [\"ci-*\"], rate: 50, burst: 100, in_flight: 20, queued: 100000, batches: 5}\n")
	}, blocks: []readerBlock{{block: "callyard config check"}}},
	{name: "docs/how-to/monitor.md", given: withDemo, blocks: []readerBlock{
		{block: "callyard doctor", replace: []string{"--approver-url https://approve.example.com", ""}},
		{block: "curl -si", replace: []string{"SERVER", "demo", "TOOL", "echo"}, want: []string{`Echo: hello`}},
	}},
	{name: "docs/how-to/pin-tool-definitions.md", given: func(r *reader) {
		folder := filepath.Join(r.dir, "bank")
		r.has("bank/version", "v0")
		server := scripted(mcptest.Versions, mcptest.Folder(folder))
		server.Pin = "quarantine"
		r.up("--servers", serversFile(r.t, map[string]entry{"files": server})).waitServers(r.t, 1, "files")
	}, blocks: []readerBlock{
		{block: "callyard tools diff files"},
		{block: "callyard tools accept", before: `
change() { echo "$1" >bank/new; mv bank/new bank/version; until callyard tools diff files | grep -q "$1"; do sleep 0.1; done; }
change v1
DIGEST=$(callyard tools diff files | grep -o 'pay@sha256:[0-9a-f]*' | tail -n 1)`,
			replace: []string{"read_file@sha256:0f3a…", "$DIGEST\nchange v2", "--all ", "--all --yes "}, want: []string{`v1`, `v2`}},
	}},
	{name: "docs/how-to/recover-a-damaged-data-folder.md", given: truncateMessages, blocks: []readerBlock{
		{block: "callyard up --accept-loss", serves: true, replace: []string{"callyard up        ", "callyard up && exit 1 ||  true "}, want: []string{`\.blk`, `is up`}},
	}},
	{name: "docs/how-to/recover-from-a-full-disk.md", given: withDemo, blocks: []readerBlock{
		{block: "readyz", replace: []string{"/var/lib/nats", "."}, want: []string{`ready`}},
	}},
	{name: "docs/how-to/reload-configuration.md", given: func(r *reader) {
		r.has("callyard.yaml", "log: {level: info}\n")
		r.has("policy.yaml", holdsAdd)
		r.has("etc/servers.json", demoServers)
		r.has("servers.json", strings.Replace(demoServers, `"files"`, `"added"`, 1))
		r.up("--servers", "etc/servers.json", "--policy", "policy.yaml").waitServers(r.t, 1, "demo", "files")
	}, blocks: []readerBlock{
		{block: "mv servers.json", replace: []string{"/etc/callyard/", "etc/"}, after: `until callyard servers | grep -q 'added.*ready'; do sleep 0.1; done`, want: []string{`frontdoor|front door`}},
	}},
	{name: "docs/how-to/rest-services.md", given: func(r *reader) {
		served := startUp(r.t, setup{env: []string{quickStop}})
		r.has("servers.json", `{"mcpServers": {"fabric": {"openapi": "`+served.url+`/openapi.json", "include": [{"paths": ["/health"]}]}}}`)
	}, blocks: []readerBlock{{block: "callyard config check", serves: true, want: []string{`#   tool get-health: GET /health`, `fabric +ready +1`}}}},
	{name: "docs/how-to/retry-calls.md", given: func(r *reader) {
		r.has("servers.json", strings.Replace(demoServers, `"demo-server"]`, `"demo-server"], "safeTools": ["echo"], "retry": {"attempts": 3}`, 1))
	}, blocks: []readerBlock{{block: "callyard config check"}}},
	{name: "docs/how-to/run-three-processes.md", given: func(r *reader) {
		port := porttest.Port(r.t)
		r.has("servers.json", demoServers)
		r.has("callyard.yaml", fmt.Sprintf("nats: {url: \"nats://127.0.0.1:%d\"}\nworker: {servers: servers.json}\n", port))
		r.set("NATS_PORT", fmt.Sprint(port))
	}, blocks: []readerBlock{{
		block: "frontdoor --config", replace: []string{
			"-sd /var/lib/nats ", "-p $NATS_PORT -sd nats >nats.log 2>&1 & ", "frontdoor --config /etc/callyard/callyard.yaml", "frontdoor --config callyard.yaml >door.log 2>&1 &",
			"worker    --config /etc/callyard/callyard.yaml", "worker --config callyard.yaml >worker.log 2>&1 &",
		},
		after: untilReady + "\ncallyard call demo echo message=three\nkill %3 %2\nwait %3 %2\nkill %1\nwait %1 || true", want: []string{`Echo: three`},
	}}},
	{name: "docs/how-to/settle-unknown-calls.md", given: withDemo, blocks: []readerBlock{{
		block: "--as run-again", before: makesUnknown + "\nA=$(unknown) B=$(unknown) C=$(unknown)", replace: []string{"CALL_ID --as done", "$A --as done", "CALL_ID --as failed", "$B --as failed", "CALL_ID --as run-again", "$C --as run-again"},
		after: `curl -sS "$URL/calls/$A"; curl -sS "$URL/calls/$B"; curl -sS "$URL/calls/$C"
curl -sS -X POST "$URL/calls/$C/cancel"`, want: []string{`unknown`, `"state":"succeeded"`, `"state":"failed"`, `"state":"(queued|running)"`},
	}}},
	{name: "docs/how-to/traces.md", given: func(r *reader) {
		r.replace = append(r.replace, "http://127.0.0.1:4318", collector(r.t).URL())
	}, blocks: []readerBlock{
		{block: "OTEL_EXPORTER_OTLP_ENDPOINT", serves: true, want: []string{`demo +ready`}},
		{block: "grep -i traceparent", want: []string{`(?i)traceparent: 00-[0-9a-f]{32}-`}},
	}},
	{name: "docs/how-to/train-with-environments.md", given: withEnvironment, blocks: []readerBlock{
		{block: "callyard env --environments", serves: true, want: []string{`environments are served at`}},
		{block: "/rewards", want: []string{`"reward":`}},
		{block: "make --dry-run train-toy", replace: []string{"make --dry-run", "make --dry-run -C $TREE"}, want: []string{`toy`}},
	}},
	{name: "docs/how-to/upgrades.md", given: func(r *reader) {
		nats := startNATS(r.t, r.t.TempDir())
		r.has("servers.json", demoServers)
		r.set("CALLYARD_NATS_URL", nats.url)
		r.set("NATS_PORT", fmt.Sprint(porttest.Port(r.t)))
		startApprover(r.t, setup{nats: nats.url, listen: r.approver})
		startFrontDoor(r.t, setup{nats: nats.url, listen: r.door, env: []string{quickStop}}).startsWorker(r, nats.url)
	}, blocks: []readerBlock{
		{block: "callyard init", before: "worker --servers servers.json >worker.log 2>&1 &\nPID=$!\nuntil callyard workers --json | grep -o '\"draining\"' | wc -l | grep -q 2; do sleep 0.1; done", replace: []string{"TERM PID", "TERM $PID", "callyard doctor", "wait $PID\ncallyard doctor"}, want: []string{`nats|NATS`}},
		{block: "--signal ldm=", before: "nats-server -a 127.0.0.1 -p $NATS_PORT -P \"$PWD/nats.pid\" >nats.log 2>&1 &\nuntil grep -q 'Server is ready' nats.log; do sleep 0.1; done", replace: []string{"/path/to/nats.pid", "$PWD/nats.pid"}, after: "wait $!"},
	}},
	{name: "docs/how-to/use-the-agent.md", given: func(r *reader) {
		answersWith(r, modeltest.Turn{Calls: []modeltest.Call{{ID: "call_1", Name: "demo__add", Arguments: `{"a":2,"b":40}`}}}, modeltest.Turn{Text: "It is 42."})
		withDemo(r)
	}, blocks: []readerBlock{
		{block: "callyard agent --model", replace: []string{"API_KEY=…", "API_KEY=k", "anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5 --base-url $MODEL"}, want: []string{`It is 42\.`}},
	}},
	{name: "docs/how-to/verify-a-release.md", given: func(r *reader) {
		r.has("callyard_1.2.3_linux_amd64.tar.gz", "an archive")
	}, blocks: []readerBlock{
		{block: "sha256sum --check", before: "sha256sum callyard_* >checksums.txt\nsed 's/callyard_1/callyard_0/' checksums.txt >>checksums.txt", want: []string{`callyard_1.2.3_linux_amd64.tar.gz: OK`}},
		{block: "go version -m callyard", replace: []string{"-m callyard", `-m "$(command -v callyard)"`}, want: []string{`github.com/nats-io/nats.go`}},
	}},
	{name: "docs/how-to/webhooks.md", given: receives, blocks: []readerBlock{
		{block: "callback_url", want: []string{`"id":"call_`}, after: untilCalled},
		{block: "callyard webhooks retry call_", replace: []string{"call_06b2t8m3c0w3v2q5n7k9a1d4fz", "call_06b2t8m3c0w3v2q5n7k9a1d4fz || test $? = 3"}, want: []string{`RECEIVER`}}, // nothing was given up
		{block: "xargs", replace: []string{"jq -r '.deliveries[].id'", "grep -o 'call_[a-z0-9]*'"}},                                                                                  // jq is not always installed
	}},
	{name: "docs/reference/cli.md", blocks: []readerBlock{
		{block: "--state failed", before: "callyard up --demo-approvals >up.log 2>&1 &\nuntil grep -q 'approver .*key' up.log; do sleep 0.1; done\n" + `
export CALLYARD_KEY=$(sed -n 's/.*requester *demo-agent *key \(\S*\).*/\1/p' up.log)
callyard call demo echo '{"message":1}' || true`, replace: []string{"jq -r '.calls[].id'", "grep -c calls"}}, // jq is not always installed
		{block: "<TAB>", replace: []string{"callyard call demo <TAB>", "complete -p callyard\ncallyard __complete call demo ''"}, want: []string{`complete .*callyard`, `echo`}},
		{block: "callyard approve appr_", before: `
export CALLYARD_KEY=$(sed -n 's/.*approver *ann *key \(\S*\).*/\1/p' up.log) EDITOR="sed -i s/2/21/"
ID=$(callyard approvals --json | grep -o 'appr_[a-z0-9]*' | head -n 1)`, replace: []string{"callyard approve appr_06b2t8m3c0w3v2q5n7k9a1d4fz --edit", `script --quiet --return --command "callyard approve $ID --edit --yes" typescript </dev/null`}, after: "kill %1\nwait %1", want: []string{`21`, `approved`}},
	}},
	{name: "docs/reference/configuration.md", given: func(r *reader) {
		r.has("callyard.yaml", "log: {level: info}\n")
		r.has("servers.json", demoServers)
		r.has("policy.yaml", holdsAdd)
	}, blocks: []readerBlock{{block: "callyard config check"}}},
	{name: "docs/reference/hostile-input.md", given: func(r *reader) { r.dir = programs.root }, blocks: []readerBlock{{block: "make --dry-run fuzz", want: []string{`fuzz`}}}},
	deploymentPage,
}

// withEnvironment has an environments file, its servers, and an address for callyard env.
func withEnvironment(r *reader) {
	address := porttest.Address(r.t)
	r.set("TREE", programs.root)
	for name, text := range notesFiles {
		r.has(name, text)
	}
	r.has("mcp.json", `{"mcpServers": {"todo": {"builtin": "todo"}, "calculator": {"builtin": "calculator"}}}`)
	r.replace = append(r.replace, "callyard env ", "callyard env --data data --listen "+address+" ", "http://127.0.0.1:8090", "http://"+address)
}

// untilCalled waits until the call of the block, the latest, has ended.
const untilCalled = `until curl -sS "$URL/calls" | grep -q '"state":"succeeded"'; do sleep 0.1; done`

func (d *door) startsWorker(r *reader, nats string) {
	startWorker(r.t, setup{nats: nats, dir: r.dir, env: r.env, servers: "servers.json"})
	d.waitServers(r.t, 1, "demo")
}

// deploymentPage runs in a copy of the tree, because deploy/secrets.sh writes into it. Instead of
// the containers of compose it uses one process, with the keys and the policy of the compose files.
var deploymentPage = readerPage{name: "docs/how-to/deployment.md", given: func(r *reader) {
	r.dir = cleanCopy(r.t)
	port := fmt.Sprint(porttest.Port(r.t))
	for _, name := range []string{"nats-server.conf"} {
		path := filepath.Join(r.dir, "deploy/nats", name)
		text, err := os.ReadFile(path)
		if err != nil {
			r.t.Fatal(err)
		}
		write(r.t, path, strings.NewReplacer("0.0.0.0:4222", "127.0.0.1:"+port, "0.0.0.0:8222", "127.0.0.1:"+fmt.Sprint(porttest.Port(r.t))).Replace(string(text)))
	}
	r.set("CALLYARD", filepath.Join(bin(r.t), "callyard"))
	r.replace = append(r.replace, "bin/callyard", "callyard", "127.0.0.1:4222", "127.0.0.1:"+port, "127.0.0.1:8081", r.approver)
}, blocks: []readerBlock{
	{block: "deploy/secrets.sh\n"},
	{
		block: ". deploy/.env", replace: []string{". deploy/.env\n", `set -a
. deploy/.env
set +a
mkdir etc
cp deploy/examples/policy.yaml etc/
echo '{"mcpServers": {"demo": {"command": "callyard", "args": ["demo-server"]}}}' >etc/servers.json
DATA_DIR=$PWD/data CONFIG_DIR=$PWD/etc callyard up --config deploy/examples/up.yaml >up.log 2>&1 &
`}, want: []string{`Echo: hello`},
	},
	{block: `"bytes":20`, want: []string{`"approval_id":"appr_`}},
	{block: "callyard approve appr_…", replace: []string{"appr_…", "--yes $(callyard approvals --json | grep -o 'appr_[a-z0-9]*' | head -n 1)"}, want: []string{`appr_`}},
	{block: `doctor --key "$AGENT_KEY"`},
	{
		block: "nats-server --config", before: `printf %s "$NATS_OPERATOR_PASSWORD" >operator.password`,
		replace: []string{"nats-server --config", `CALLYARD_NATS_STORE=$PWD/nats CALLYARD_NATS_FRONTDOOR=$NATS_FRONTDOOR_PASSWORD CALLYARD_NATS_APPROVER=$NATS_APPROVER_PASSWORD CALLYARD_NATS_WORKER=$NATS_WORKER_PASSWORD \
CALLYARD_NATS_OPERATOR=$NATS_OPERATOR_PASSWORD CALLYARD_NATS_SYSTEM=$NATS_SYSTEM_PASSWORD nats-server --config`, "nats-server.conf\n", "nats-server.conf >nats.log 2>&1 &\nuntil grep -q 'Server is ready' nats.log; do sleep 0.1; done\n"}, want: []string{`created|callyard_`},
	},
	{block: "callyard keys warrant frontdoor", after: "ls frontdoor.pem approver.pub.pem"},
	{block: "callyard doctor --url", replace: []string{"callyard doctor", `callyard doctor --key "$AGENT_KEY" --approver-key "$ANN_KEY"`}, after: "kill %1 %2\nwait %1"},
}}
