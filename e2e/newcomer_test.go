package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// newcomerPages are the pages whose blocks a newcomer pastes, with the expected output of each
// block, in the order of the page. The output must match all patterns. A block is identified by a
// part of its text.
var newcomerPages = []tutorialPage{
	{"README.md", []tutorialBlock{
		{block: "go run ./cmd/callyard up\n", serves: true, want: []string{`REST API +http`, `MCP +http\S+/mcp`, `demo +ready +5\n`, `Try it in another terminal:\n +curl --json`}},
		{block: "scripts/test.sh\n"}, // the current run
		{block: `/servers/demo/tools/echo"`, want: []string{`Echo: hello`}},
		{block: "make build\nexport PATH"},
		{block: "callyard servers\n", want: []string{`demo`, `42`}},
		{block: "callyard batch", want: []string{`Echo: 1`, `Echo: 3`, `3`}},
		{block: "up --policy policy.yaml", serves: true, want: []string{`demo +ready`}},
		{block: "token=$(echo", want: []string{`"requires_confirmation":true`, `42`}},
	}},
	{"docs/tutorials/first-call.md", []tutorialBlock{
		{block: "callyard up\n", serves: true, want: []string{`demo +ready +5\n`}},
		{block: "callyard servers\n", want: []string{`demo`, `Adds two numbers`}},
		{block: `/servers/demo/tools/echo"`, want: []string{`Echo: hello`}},
		{block: "callyard call demo add", want: []string{`42`, `Echo: hello`}},
		{block: "timeout_ms", want: []string{`Echo: hello`}},
		{block: "text/event-stream' --json '{\"seconds\":1}'", want: []string{`event: progress`, `event: result`, `slept 1s`}},
		{block: "invalid-arguments", want: []string{`invalid-arguments`}},
		{block: "callyard calls --since", want: []string{`echo`}},
		{block: "up --servers deploy/examples/mcp.json", serves: true, want: []string{`everything +ready`, `thinking +ready`}},
		{block: "trigger-long-running-operation", want: []string{`42`, `event: progress`, `event: result`}},
	}},
	{"docs/tutorials/first-batch.md", []tutorialBlock{
		{block: "callyard up\n", serves: true, want: []string{`demo +ready +5\n`}},
		{block: "done > calls.ndjson"},
		{block: "callyard batch calls.ndjson", want: []string{`100`}},
		{block: "head -n 3 calls.results.ndjson", want: []string{`Echo: hello \d`, `batch_`}},
		{block: "done > naps.ndjson", replace: []string{"callyard batch", "timeout -s INT 2 callyard batch", "naps.ndjson\n", "naps.ndjson || true\n"}}, // Ctrl-C
		{block: "callyard batch naps.ndjson", want: []string{`100`}},
		{block: "stream=true", want: []string{`"custom_id":"c3"`}},
	}},
	{"docs/tutorials/first-approval.md", []tutorialBlock{
		{block: "callyard up --demo-approvals", serves: true, want: []string{`requester +demo-agent +key \S+`, `approver +ann +key \S+`}},
		{block: "the key of demo-agent", key: `requester +demo-agent +key (\S+)`, want: []string{`"approval_id"`}},
		{block: "the key of ann", key: `approver +ann +key (\S+)`, ids: `"approval_id":"(appr_\w+)"`, replace: []string{"callyard approve ", "callyard approve --yes "}, want: []string{`appr_`}},
		{block: "?wait=30", key: `requester +demo-agent +key (\S+)`, ids: `"call_id":"(call_\w+)"`, want: []string{`"state":"succeeded"`, `42`}},
	}},
	{"docs/how-to/replace-mcp-bridge.md", []tutorialBlock{
		{block: "MCP_CONFIG_PATH", serves: true, want: []string{`Callyard \S+ is up`, `\S+ +ready +\d`}},
	}},
	{"docs/tutorials/first-fleet.md", []tutorialBlock{
		{block: "go build -o bin/ github.com/nats-io/nats-server/v2"},
		{block: "nats-server -a 127.0.0.1"},
		{block: "frontdoor --nats", starts: []string{"a", "b"}},
		{block: "callyard workers", want: []string{`(?m)^a_`, `(?m)^b_`, `42`}},
		{block: "kill -TERM $A", want: []string{`42`}},
		{block: "kill $(jobs -p"},
	}},
}

type tutorialPage struct {
	name   string
	blocks []tutorialBlock
}

type tutorialBlock struct {
	block  string
	serves bool     // it runs until Ctrl-C
	starts []string // workers that it starts in the background
	want   []string
	// Manual replacements of a reader: key and ids are patterns of a key and of an ID in earlier
	// output, which replace "…". replace has pairs of old and new text.
	key, ids string
	replace  []string
}

// typed returns the text of a block with the reader's replacements from earlier output.
func (b *tutorialBlock) typed(t *testing.T, text, printed string) string {
	t.Helper()
	last := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(printed, -1)
		if len(found) == 0 {
			t.Fatalf("nothing printed %q:\n%s", pattern, printed)
		}
		return found[len(found)-1][1]
	}
	text = strings.NewReplacer(b.replace...).Replace(text)
	if b.ids != "" {
		id := last(b.ids)
		kind, _, _ := strings.Cut(id, "_")
		text = strings.ReplaceAll(text, kind+"_…", id)
	}
	if b.key == "" {
		return "unset CALLYARD_KEY\n" + text
	}
	key := last(b.key)
	return "export CALLYARD_KEY=" + key + "\n" + strings.ReplaceAll(text, "CALLYARD_KEY=…", "CALLYARD_KEY="+key)
}

// shell is a terminal into which blocks are pasted, one after the other.
type shell struct {
	cmd      *exec.Cmd
	in       *os.File
	lines    chan string
	n        int
	patience time.Duration // for each block
}

func openShell(t *testing.T, dir string, env []string) *shell {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{cmd: exec.Command("bash"), in: w, lines: make(chan string, 10_000), patience: 5 * time.Minute}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdin = dir, env, r
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = outW, outW
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = r.Close(), outW.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(s.lines)
		for scan := bufio.NewScanner(outR); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = w.Close()
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM) // including its background processes
		_ = s.cmd.Wait()
		deadline := time.After(stopWithin)
		for {
			select {
			case _, more := <-s.lines:
				if !more {
					<-read
					_ = outR.Close()
					return
				}
			case <-deadline:
				_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
				deadline = nil
				t.Error("a process of the README does not end after SIGTERM")
			}
		}
	})
	return s
}

// paste runs a block and returns its output. A command that fails is an error.
func (s *shell) paste(t *testing.T, text string) string {
	t.Helper()
	s.n++
	mark := fmt.Sprintf("pasted-%d", s.n)
	_, _ = fmt.Fprintf(s.in, "trap 'echo \"FAILED: $BASH_COMMAND\"' ERR\n%s\necho; echo %s\n", text, mark)
	var out strings.Builder
	for deadline := time.After(s.patience); ; {
		select {
		case line, more := <-s.lines:
			if !more {
				t.Fatalf("the shell ended after\n%s%s", text, out.String())
			}
			if line == mark {
				if strings.Contains(out.String(), "FAILED: ") {
					t.Errorf("a command failed:\n%s\n%s", text, out.String())
				}
				return out.String()
			}
			out.WriteString(line + "\n")
		case <-deadline:
			t.Fatalf("it does not end:\n%s%s", text, out.String())
		}
	}
}

// cleanCopy returns a copy of the current tree as in a clone.
func cleanCopy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyTree := exec.Command("bash", "-e", "-o", "pipefail", "-c", `git -C "$0" ls-files -z --cached --others --exclude-standard --deduplicate | (cd "$0" && xargs -0 ls -d 2>/dev/null | tar -cf - --no-recursion -T -) | tar -xf - -C "$1"`, programs.root, dir)
	if out, err := copyTree.CombinedOutput(); err != nil {
		// xargs exits with 123 if a listed file was deleted.
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 123 {
			t.Fatalf("copying the tree: %v\n%s", err, out)
		}
	}
	return dir
}

// TestReadmeCommandsWorkInOrder pastes each block of README.md and of the linked pages
// into a shell in a clean copy of the tree, in order, like a newcomer, and checks
// the output. Only the ports differ, because other tests run at the same time.
func TestReadmeCommandsWorkInOrder(t *testing.T) {
	dir := cleanCopy(t)
	door, second, approver, bridge, nats := porttest.Address(t), porttest.Address(t), porttest.Address(t), porttest.Port(t), porttest.Port(t)
	ports := strings.NewReplacer("PORT=3000", fmt.Sprintf("PORT=%d", bridge), "127.0.0.1:8080", door, "127.0.0.1:8090", second,
		"nats-server -a 127.0.0.1", fmt.Sprintf("nats-server -a 127.0.0.1 -p %d", nats), "127.0.0.1:4222", fmt.Sprintf("127.0.0.1:%d", nats))
	common := append(cleanEnviron(), "CALLYARD_APPROVER_LISTEN="+approver, "NO_PROXY=127.0.0.1", quickStop,
		"npm_config_prefer_offline=true", // do not fetch again what the set-up of the tests has fetched
		"PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH")) // each serving block has a separate terminal
	env := append(common[:len(common):len(common)], "CALLYARD_FRONT_DOOR_LISTEN="+door)
	terminal := openShell(t, dir, env)
	var up *served
	var printed strings.Builder
	for _, page := range newcomerPages {
		document, err := os.ReadFile(filepath.Join(programs.root, page.name))
		if err != nil {
			t.Fatal(err)
		}
		pasted := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(document), -1)
		if len(pasted) != len(page.blocks) {
			t.Fatalf("%s has %d blocks to paste, and newcomerPages knows %d", page.name, len(pasted), len(page.blocks))
		}
		for i, block := range pasted {
			text, want := ports.Replace(block[1]), page.blocks[i]
			if !strings.Contains(block[1], want.block) {
				t.Fatalf("block %d of %s is not the one of %q:\n%s", i+1, page.name, want.block, block[1])
			}
			if up != nil && (want.serves || want.starts != nil) {
				up.interrupt(t)
				up = nil
			}
			var out string
			switch {
			case want.block == "scripts/test.sh\n":
				continue
			case want.serves:
				env := env
				if strings.Contains(text, "PORT=") {
					env = common // PORT applies if nothing else sets the address
				}
				up = serve(t, dir, env, text, want.want)
				out = up.out.String()
			default:
				out = terminal.paste(t, "export CALLYARD_URL=http://"+door+" CALLYARD_APPROVER_URL=http://"+approver+"\n"+want.typed(t, text, printed.String()))
			}
			if want.starts != nil {
				out += eventuallyCalls(t, "http://"+door, want.starts) + eventuallyCalls(t, "http://"+second, want.starts)
			}
			t.Logf("%s%s", text, out)
			printed.WriteString(out)
			for _, pattern := range want.want {
				if !regexp.MustCompile(pattern).MatchString(out) {
					t.Errorf("block %d of %s does not print %q:\n%s\n%s", i+1, page.name, pattern, text, out)
				}
			}
		}
	}
}

// served is the process of a block that runs until Ctrl-C.
type served struct {
	cmd  *exec.Cmd
	out  output
	done chan struct{}
}

// serve runs a block in a separate terminal and waits for its expected output.
func serve(t *testing.T, dir string, env []string, text string, patterns []string) *served {
	t.Helper()
	s := &served{cmd: exec.Command("bash", "-e", "-c", text), done: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = dir, env, &s.out, &s.out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // its exit after Ctrl-C depends on go run
	}()
	t.Cleanup(func() {
		select {
		case <-s.done:
		default:
			_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
			<-s.done
		}
	})
	for _, pattern := range patterns {
		// The first start compiles everything, and others download packages.
		eventually(t, 5*time.Minute, pattern, func() error {
			select {
			case <-s.done:
				t.Fatalf("it ended:\n%s\n%s", text, s.out.String())
			default:
			}
			if !regexp.MustCompile(pattern).MatchString(s.out.String()) {
				return errors.New(s.out.Tail(2000))
			}
			return nil
		})
	}
	return s
}

// interrupt sends Ctrl-C.
func (s *served) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(stopWithin):
		t.Fatalf("it does not end after Ctrl-C:\n%s", s.out.Tail(4000))
	}
}

// eventuallyCalls waits until a front door reports the workers with their servers, and a call of
// server-everything succeeds.
func eventuallyCalls(t *testing.T, base string, workers []string) (body string) {
	t.Helper()
	curl := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "--fail-with-body"}, args...)...)
		cmd.Env = proc.CleanEnviron()
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return string(out), nil
	}
	eventually(t, startWithin, "a call over three processes", func() (err error) {
		seen, err := curl(base + "/workers")
		if err != nil {
			return err
		}
		for _, name := range workers {
			if !strings.Contains(seen, `"`+name+`"`) {
				return fmt.Errorf("no worker %s: %s", name, seen)
			}
		}
		if ready := strings.Count(seen, `"initialized"`); ready < 4*len(workers) { // the example has four
			return fmt.Errorf("not every worker has its servers: %s", seen)
		}
		body, err = curl("--json", `{"message":"three"}`, base+"/servers/everything/tools/echo")
		return err
	})
	return body
}

// TestStartScreenShowsServerFailuresAndUseOfKeys starts `up` with a key and a
// server that fails.
func TestStartScreenShowsServerFailuresAndUseOfKeys(t *testing.T) {
	servers := filepath.Join(t.TempDir(), "servers.json")
	text := fmt.Sprintf(`{"mcpServers":{"demo":{"command":%q,"args":["demo-server"]},"broken":{"command":"sh","args":["-c","echo cannot open the database >&2; exit 3"]}}}`, filepath.Join(bin(t), "callyard"))
	if err := os.WriteFile(servers, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "callyard.yaml")
	if err := os.WriteFile(config, []byte("front_door: {keys: [{name: ann, hash: \"sha256:"+strings.Repeat("0", 64)+"\"}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := start(t, program{name: "up", path: filepath.Join(bin(t), "callyard"), args: []string{"up", "--config", config, "--servers", servers}, dir: t.TempDir(),
		env: append(cleanEnviron(), "CALLYARD_FRONT_DOOR_LISTEN=127.0.0.1:0", "CALLYARD_APPROVER_LISTEN=127.0.0.1:0", quickStop)})
	for _, pattern := range []string{
		`MCP +http://\S+/mcp\n`,
		`  broken +failed +- +\S.*\n`,
		`  demo +ready +5\n`,
		`  broken wrote to stderr:\n +cannot open the database\n`,
		`Try it in another terminal, with an API key in CALLYARD_KEY:\n +curl -H "X-API-Key: \$CALLYARD_KEY" --json '\{"message":"hi"\}' http://\S+/servers/demo/tools/echo\n`,
	} {
		up.says(t, pattern)
	}
	up.stop(t)
}
