package e2e

import (
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/agent/modeltest"
)

// notRunRow is a command that does not run on the machine of a test.
type notRunRow struct {
	command string // the beginning of its line
	reason  string
	instead string // the command that runs instead; if empty, none
	by      string // the test that runs it or an equivalent, as "file: text in it"
}

var notRun = []notRunRow{
	{command: "docker compose ", reason: "the compose plugin is no part of the test machine; the files and the commands for backup run against an engine", by: "e2e/deploy/backup_test.go: composeRun.FindAll"},
	{command: "docker volume ", reason: "as docker compose: the test empties the volume itself", by: "e2e/deploy/backup_test.go: p.Empty"},
	{command: "kubectl ", reason: "needs a cluster; what the chart makes of these secrets is rendered and run", by: "e2e/deploy/helm_test.go: func TestFabricRunsWithConfigsOfTheChart"},
	{command: "helm install ", reason: "needs a cluster; the chart is rendered by Helm's library", by: "deploy/checks/helm_test.go: func TestRenderedChartMatchesTestdata"},
	{command: "deploy/images/build.sh ", reason: "takes a minute; the tests of sandboxes build and use the same images", by: "e2e/harness_sandbox_test.go: deploy/images/build.sh"},
	{command: "cosign ", reason: "needs the signature of a published release, and Sigstore's public log"},
	{command: "gh attestation ", reason: "needs a published release"},
	{command: "go get github.com/callyard/callyard", reason: "needs a published module; the programs of these pages are built from the tree", by: "e2e/native_test.go: write-tools-in-go.md"},
	{command: "git clone https://github.com/callyard/callyard ../callyard", reason: "needs the network; a test follows these lines with the tree in place of the clone", by: "e2e/fabric/docs_test.go: func TestAModuleThatFollowsTheDocsFindsThePackages"},
	{command: "go mod edit ", reason: "follows git clone", by: "e2e/fabric/docs_test.go: func TestAModuleThatFollowsTheDocsFindsThePackages"},
	{command: "go mod tidy ", reason: "follows git clone", by: "e2e/fabric/docs_test.go: func TestAModuleThatFollowsTheDocsFindsThePackages"},
	{command: "pip install './clients/python[attach]'", reason: "fetches packages; the tests run the adapter from the tree", by: "e2e/attach_test.go: clients/python"},
	{command: "pip install \"trl[openreward]\"", reason: "fetches a trainer with its frameworks; make trainers installs it and runs it", by: "e2e/env_trainers_test.go: func TestTRLBuildsDataSetAndTools"},
	{command: "pip install \"verifiers[openenv]\" uv", reason: "fetches a trainer; make trainers installs it and runs it", by: "e2e/env_trainers_test.go: func TestVerifiersTaskSetRuns"},
	{command: "vf-eval @ eval.toml", reason: "is a program of verifiers; make trainers runs it", by: "e2e/env_trainers_test.go: func TestVerifiersTaskSetRuns"},
	{command: "callyard eval score run/ --data tasks:tasks.jsonl --responses transcripts/notes", reason: "needs transcripts of episodes that have ended", by: "e2e/env_watched_test.go: func TestRolloutsAndSessionsAreScoredAlike"},
	{command: "callyard eval score run/ --data jsonl:questions.jsonl --responses ~/.local/state/callyard/agent", reason: "reads the sessions of the person at the machine", by: "internal/cli/eval_agent_test.go: func TestAgentCallsAreScoredByTurn"},
	{command: "curl --cert agent.crt --key agent.key", reason: "needs a certificate of an authority, and a front door that serves TLS", by: "internal/frontdoor/certificates_test.go: func TestClientCertificateAuthenticatesAsItsKey"},
	{command: "curl -sS --fail-with-body -H \"X-API-Key: $KEY\" https://approve.example.com/grants", reason: "needs an authorization server and a program that was given access", by: "internal/approver/web/grants_test.go: func TestAdministratorListsAndRevokesProgramsOfTheTenant"},
	{command: "curl -sS --fail-with-body -H \"X-API-Key: $KEY\" -X DELETE https://approve.example.com/grants/", reason: "as the list of grants", by: "internal/approver/web/grants_test.go: func TestAdministratorListsAndRevokesProgramsOfTheTenant"},
	{command: "callyard webhooks --approver ", reason: "needs an approver with a receiver that fails", by: "internal/approver/deliveries_test.go: func TestFailedDeliveriesOfApprovalEventsAreListedAndSentAgain"},
	{command: "callyard webhooks retry --approver ", reason: "as callyard webhooks --approver", by: "internal/approver/deliveries_test.go: func TestFailedDeliveriesOfApprovalEventsAreListedAndSentAgain"},
	{command: "callyard tenants erase billing ", reason: "needs a front door that was started again without the tenant", by: "e2e/erase_test.go: func TestDataOfDeletedTenantIsUnreadable"},
	{command: "python3 -m venv bfcl", reason: "fetches packages; the set-up of the tests installs the same ones", by: "scripts/test.sh: python_install tools/bfcl"},
	{command: "bfcl/bin/pip install ", reason: "follows python3 -m venv; the set-up of the tests does it", by: "scripts/test.sh: python_install tools/bfcl"},
	{command: "callyard eval run run/ --data bfcl:bfcl_eval/data --set multi_turn_base", reason: "needs the classes of bfcl-eval", by: "e2e/eval_turns_test.go: func TestModelAnswersABFCLConversation"},
	{command: "npm install ./clients/typescript ", reason: "fetches packages; the tests run the adapter from the tree", by: "e2e/attach_test.go: clients/typescript"},
	{command: "pip install clients/python", reason: "fetches packages; the set-up of the tests installs the same ones", by: "scripts/test.sh: python_install clients/python"},
	{command: "npm ci --prefix clients/typescript", reason: "fetches packages; the set-up of the tests does it", by: "scripts/test.sh: npm_install clients/typescript"},
	{command: "npm run --prefix clients/typescript", reason: "follows npm ci; the set-up of the tests does it", by: "scripts/test.sh: npm_install clients/typescript"},
	{command: "systemctl ", reason: "needs systemd; a restart of nats-server after a full disk is tested", by: "e2e/full_disk_linux_test.go: func TestNATSServerRecoversFromFullDiskAfterRestart"},
	{command: "scripts/test.sh", reason: "is this run"},
	{command: "scripts/bench.sh ", reason: "measures for a minute, on a quiet machine", by: "bench/main_run_test.go: func TestRunStartsTargetsMeasuresWritesAndStops"},
	{command: "callyard bench --figures published ", reason: "measures for minutes, and needs checkouts of the peers", by: "bench/published_test.go: func TestTableOfPublishedBenchmarkIsWritten"},
	{command: "go -C e2e run ./chaos/cmd/chaos ", reason: "takes minutes; its test runs the same size", by: "e2e/chaos/chaos_test.go: func TestGuaranteesHoldUnderFaultsAndViolationsAreDetected"},
	{command: "make ", instead: "make --dry-run ", reason: "takes minutes to hours; make resolves the target and its variables"},
}

// demoServers has servers that start at once. everything and files replace those of the pages.
const demoServers = `{"mcpServers": {
	"demo": {"command": "callyard", "args": ["demo-server"]},
	"files": {"builtin": "files", "roots": ["."]},
	"airline": {"builtin": "files", "roots": ["."], "sessions": 1, "inFlight": 1}
}}`

// holdsAdd is a policy that holds a tool for its caller.
const holdsAdd = "rules: [{name: additions, match: {server: demo, tool: add}, approval: {by: caller}}, {name: rest, match: {server: \"*\"}, level: 1}]\n"

// withDemo starts Callyard with servers that start at once.
func withDemo(r *reader) {
	r.has("servers.json", demoServers)
	r.up("--servers", "servers.json").waitServers(r.t, 1, "demo", "files")
}

// makesUnknown is a shell function that makes a call with an unknown outcome, and prints its ID.
const makesUnknown = `unknown() {
  local id=$(curl -sS --fail-with-body -H 'Prefer: respond-async' --json '{"seconds":50}' "$URL/servers/demo/tools/sleep" | grep -o 'call_[^"]*' | head -n 1)
  until curl -sS "$URL/calls/$id" | grep -q '"state":"running"'; do sleep 0.05; done
  curl -sS --fail-with-body -o cancel.json -X POST "$URL/calls/$id/cancel"
  until curl -sS "$URL/calls/$id" | grep -q '"state":"unknown"'; do sleep 0.05; done
  echo "$id"
}`

// receives gives the reader a webhook receiver, and a Callyard that may call it.
func receives(r *reader) {
	data := filepath.Join(r.dir, "callyard-data")
	address, got := startReceiver(r.t, func() string {
		text, err := os.ReadFile(filepath.Join(data, "webhooks.secret"))
		if err != nil {
			r.t.Error(err)
		}
		return strings.TrimSpace(string(text))
	}, 0)
	host, err := url.Parse(address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.replace = append(r.replace, "https://example.com/hook", address+"/hook", `"server":"books","tool":"post","arguments":{"no":7}`, `"server":"demo","tool":"echo","arguments":{"message":"7"}`)
	r.has("servers.json", demoServers)
	r.has("callyard.yaml", "webhooks: {allowed_hosts: [\""+host.Host+"\"]}\n")
	r.up("--servers", "servers.json", "--config", "callyard.yaml").waitServers(r.t, 1, "demo")
	r.t.Cleanup(func() {
		select { // it is called after the command has ended
		case <-got:
		case <-time.After(time.Minute):
			r.t.Error("the receiver was not called")
		}
	})
}

// answersWith gives the reader a model API in $MODEL.
func answersWith(r *reader, turns ...modeltest.Turn) {
	model := modeltest.New(turns)
	model.ByHistory = true
	api := httptest.NewServer(model)
	r.t.Cleanup(func() {
		api.Close()
		if refused := model.Refused(); len(refused) > 0 {
			r.t.Errorf("the API of the model refused %v", refused)
		}
	})
	r.set("MODEL", api.URL)
}

// last returns the group of the last match of a pattern in the output of the running blocks.
func (r *reader) last(pattern string) string {
	r.t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(r.serving.out.String(), -1)
	if len(found) == 0 {
		r.t.Fatalf("nothing printed %q: %s", pattern, r.serving.out.String())
	}
	return found[len(found)-1][1]
}

// truncateMessages truncates the messages of a stream, after a call was stored and Callyard stopped.
func truncateMessages(r *reader) {
	up := r.up()
	up.waitServers(r.t, 1, "demo")
	up.ask(r.t, "POST", toolPath("demo", "echo"), `{"message":"kept"}`, "Prefer: respond-async")
	up.stop(r.t)
	found, err := filepath.Glob(filepath.Join(r.dir, "callyard-data", "nats", "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil || len(found) == 0 {
		r.t.Fatalf("no messages: %v", err)
	}
	for _, name := range found {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			if err := os.Truncate(name, info.Size()-1); err != nil {
				r.t.Fatal(err)
			}
			return
		}
	}
	r.t.Fatal("all streams are empty")
}

func TestEachReaderPageIsListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range readerPages {
		if seen[p.name] {
			t.Errorf("%s is listed twice", p.name)
		}
		seen[p.name] = true
	}
}
