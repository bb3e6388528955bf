package mcptest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

func TestASilentServerNeverWritesAByte(t *testing.T) {
	p := start(t, mcptest.Silent)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	p.ping(2)
	p.call(3, "echo", `{"text":"x"}`)
	if rest := p.rest(); rest != "" {
		t.Errorf("the silent server wrote %q", rest)
	}
}

func TestAMuteServerAnswersEverythingButCalls(t *testing.T) {
	p := start(t, mcptest.MuteCalls)
	p.call(1, "echo", `{"text":"x"}`)
	p.ping(2)
	if got := p.line(); decode(t, got).ID != 2.0 {
		t.Errorf("got %s, want the answer to the ping", got)
	}
	if rest := p.rest(); rest != "" {
		t.Errorf("the call was answered: %q", rest)
	}
}

func TestGarbageModeWritesInvalidLinesAroundAnswers(t *testing.T) {
	p := start(t, mcptest.Garbage)
	for id := range 8 {
		p.call(id, "echo", `{"text":"x"}`)
	}
	good, bad := 0, 0
	for line := range strings.Lines(p.rest()) {
		if json.Valid([]byte(line)) {
			good++
		} else {
			bad++
		}
	}
	if good != 8 || bad != 16 {
		t.Errorf("%d good lines and %d bad ones, want 8 and 16", good, bad)
	}
}

func TestFloodModeWritesGarbageBeforeTheAnswer(t *testing.T) {
	p := start(t, mcptest.Garbage, mcptest.Flood())
	bad := 0
	for ; bad < 1000; bad++ {
		if line := p.line(); json.Valid([]byte(line)) {
			t.Fatalf("an answer before the question: %s", line)
		}
	}
	p.ping(1)
	for line := p.line(); !json.Valid([]byte(line)); line = p.line() {
		bad++
	}
	if bad < 1000 {
		t.Errorf("only %d lines of garbage", bad)
	}
}

func TestAHugeAnswerHasTheSizeAskedFor(t *testing.T) {
	const size = 3<<20 + 7
	p := start(t, mcptest.Huge, mcptest.Size(size))
	p.call(1, "echo", `{"text":"x"}`)
	if got := len(decode(t, p.line()).text()); got != size {
		t.Errorf("%d bytes of text, want %d", got, size)
	}
}

func TestAHugeAnswerIsAHundredMegabytesByDefault(t *testing.T) {
	p := start(t, mcptest.Huge)
	p.call(1, "echo", `{"text":"x"}`)
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, p.stdout)
	if err != nil || n < 100<<20 {
		t.Errorf("%d bytes, %v; want at least %d", n, err, 100<<20)
	}
}

func TestExitingServerWritesTheReasonToStderr(t *testing.T) {
	out, err := command(t, mcptest.Exit).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != mcptest.ExitStatus {
		t.Fatalf("ended with %v, want status %d", err, mcptest.ExitStatus)
	}
	if len(out) != 0 || !bytes.Contains(exit.Stderr, []byte(mcptest.ExitText)) {
		t.Errorf("stdout %q, stderr %q", out, exit.Stderr)
	}
}

func TestAnUnknownModeIsRefused(t *testing.T) {
	err := command(t, "no-such-mode").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("ended with %v, want status 2", err)
	}
}

func TestACrashLeavesTheCallUnanswered(t *testing.T) {
	p := start(t, mcptest.Echo)
	p.call(1, "crash", `{}`)
	rest, err := io.ReadAll(p.stdout)
	if err != nil || len(rest) != 0 {
		t.Errorf("read %q, %v; want nothing", rest, err)
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != mcptest.CrashStatus {
		t.Errorf("ended with %v, want status %d", err, mcptest.CrashStatus)
	}
}

func TestGrandchildrenOutliveTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pids")
	p := start(t, mcptest.Grandchild, mcptest.PIDFile(path))
	p.ping(1)
	_ = p.line()
	pids, err := mcptest.ReadPIDs(path)
	if err != nil {
		t.Fatal(err)
	}
	end := func(pid int) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("the grandchild %d is gone: %v", pid, err)
		}
	}
	t.Cleanup(func() { end(pids.Child); end(pids.Session) })
	own, err := syscall.Getpgid(p.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pids.Child); err != nil || group != own {
		t.Errorf("the child is in group %d, %v; want that of the server, %d", group, err, own)
	}
	if group, err := syscall.Getpgid(pids.Session); err != nil || group != pids.Session {
		t.Errorf("the session leader is in group %d, %v; want its own, %d", group, err, pids.Session)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	for _, pid := range []int{pids.Child, pids.Session} {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("the grandchild %d did not outlive the server: %v", pid, err)
		}
	}
}

func TestALegacyServerMayIgnoreDiscover(t *testing.T) {
	p := start(t, mcptest.IgnoreDiscover)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	if got := p.line(); decode(t, got).ID != 2.0 || !strings.Contains(got, `"2025-06-18"`) {
		t.Errorf("got %s, want the answer to initialize", got)
	}
	if rest := p.rest(); rest != "" {
		t.Errorf("discover was answered: %q", rest)
	}
}

func TestIgnoreEOFServerRunsUntilItIsKilled(t *testing.T) {
	p := start(t, mcptest.IgnoreEOF)
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if line, err := p.stderr.ReadString('\n'); err != nil || line != want+"\n" {
			t.Fatalf("stderr says %q, %v; want %q", line, err, want)
		}
	}
	expect(mcptest.StayedEOF)
	for _, polite := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		if err := p.cmd.Process.Signal(polite); err != nil {
			t.Fatal(err)
		}
		expect(mcptest.StayedSignal)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(p.stderr); err != nil || len(rest) != 0 {
		t.Errorf("after the kill: %q, %v", rest, err)
	}
}

func TestWrongIDModeAnswersUnderAnotherID(t *testing.T) {
	p := start(t, mcptest.WrongID)
	p.call(1, "echo", `{"text":"x"}`)
	if got := decode(t, p.line()); got.ID == 1.0 || got.text() != "x" {
		t.Errorf("got %+v, want the answer under another id", got)
	}
	if rest := p.rest(); rest != "" {
		t.Errorf("and also %q", rest)
	}
}

func TestDuplicateAnswersDiffer(t *testing.T) {
	p := start(t, mcptest.DuplicateAnswers)
	p.call(1, "echo", `{"text":"the first"}`)
	first, second := decode(t, p.line()), decode(t, p.line())
	if first.ID != 1.0 || first.text() != "the first" || second.ID != 1.0 || second.text() != mcptest.SecondAnswer {
		t.Errorf("got %+v and %+v", first, second)
	}
}

func TestDeepAnswerExceedsTheLimitOfEncodingJSON(t *testing.T) {
	p := start(t, mcptest.Deep)
	p.call(1, "echo", `{"text":"x"}`)
	line := p.line()
	if depth := strings.Count(line, `{"a":`); depth != 100_000 {
		t.Errorf("the answer is %d deep, want 100000", depth)
	}
	if json.Valid([]byte(line)) {
		t.Error("the standard decoder takes the answer")
	}
}

func TestSmallerDeepAnswerIsValidJSON(t *testing.T) {
	p := start(t, mcptest.Deep, mcptest.Size(9000))
	p.call(1, "echo", `{"text":"x"}`)
	if line := p.line(); !json.Valid([]byte(line)) {
		t.Errorf("not JSON: %.80s", line)
	}
}

func TestLegacyServerChangesItsToolsOnceAfterTheFirstCall(t *testing.T) {
	p := start(t, mcptest.SchemaChange)
	required := func() int {
		t.Helper()
		p.send(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		schema := decode(t, p.line()).Result.Tools[0]["inputSchema"].(map[string]any)
		return len(schema["required"].([]any))
	}
	if got := required(); got != 1 {
		t.Errorf("before the call echo requires %d members, want 1", got)
	}
	p.call(2, "echo", `{"text":"x"}`)
	if got := decode(t, p.line()); got.ID != 2.0 {
		t.Errorf("got %+v, want the answer first", got)
	}
	if got := decode(t, p.line()); got.Method != "notifications/tools/list_changed" {
		t.Errorf("got %+v, want the notification", got)
	}
	if got := required(); got != 2 {
		t.Errorf("after the call echo requires %d members, want 2", got)
	}
	p.call(4, "echo", `{"text":"x"}`)
	if rest := p.rest(); strings.Contains(rest, "list_changed") {
		t.Errorf("a second call changed the list again: %s", rest)
	}
}

func TestModernServerNotifiesSubscribersOfToolChanges(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	p := start(t, mcptest.SchemaChange, mcptest.Modern())
	p.send(`{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`)
	if got := p.line(); decode(t, got).Method != "notifications/subscriptions/acknowledged" || !strings.Contains(got, `subscriptionId":"listen"`) {
		t.Fatalf("got %s, want the acknowledgement", got)
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},` + meta + `}}`)
	if got := decode(t, p.line()); got.ID != 2.0 || got.Result.ResultType != "complete" {
		t.Errorf("got %+v, want a complete answer", got)
	}
	if got := p.line(); decode(t, got).Method != "notifications/tools/list_changed" || !strings.Contains(got, `subscriptionId":"listen"`) {
		t.Errorf("got %s, want the notification of the subscription", got)
	}
}

func TestUnknownContentEqualsTheDocumentedBytes(t *testing.T) {
	for _, modern := range []bool{false, true} {
		p := start(t, mcptest.UnknownContent, mcptest.BothEras())
		meta := ""
		if modern {
			meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
		}
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"odd","arguments":{}` + meta + `}}`)
		want := `{"jsonrpc":"2.0","id":1,"result":` + string(mcptest.UnknownContentResult(modern)) + `}`
		got := p.line()
		if got != want {
			t.Errorf("modern %t: got %s\nwant %s", modern, got, want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("modern %t: not JSON: %s", modern, got)
		}
		p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		if got := p.line(); !strings.HasSuffix(got, ","+mcptest.OddTool+`]}}`) || !json.Valid([]byte(got)) {
			t.Errorf("the list does not end with the odd tool: %s", got)
		}
	}
}

func TestHalfLineModeWritesNothingAfterHalfALine(t *testing.T) {
	p := start(t, mcptest.HalfLine)
	p.ping(1)
	_ = p.line()
	p.call(2, "echo", `{"text":"x"}`)
	half := make([]byte, len(`{"jsonrpc":"2.0","id":2,"result":{`)-1)
	if _, err := io.ReadFull(p.stdout, half); err != nil {
		t.Fatal(err)
	}
	p.ping(3)
	rest := p.rest()
	if whole := string(half) + rest; strings.Contains(whole, "\n") || json.Valid([]byte(whole)) || !strings.HasPrefix(whole, `{"jsonrpc":"2.0","id":2`) {
		t.Errorf("got %q, want half a line and no more", whole)
	}
}
