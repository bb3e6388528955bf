package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// engine is a real model server: llama.cpp with a model of 135 million parameters, which uses
// tools badly.
type engine struct {
	*process
	url string
}

// startEngine starts one. CALLYARD_TEST_ENGINE names a Python that has it; scripts/test.sh
// installs it.
func startEngine(t *testing.T) *engine {
	t.Helper()
	python := os.Getenv("CALLYARD_TEST_ENGINE")
	if python == "" {
		t.Skip("CALLYARD_TEST_ENGINE names no Python with a model and its server")
	}
	folder := filepath.Join(programs.root, "e2e", "engine")
	e := &engine{process: start(t, program{name: "llama.cpp", path: python, args: []string{filepath.Join(folder, "serve.py"), filepath.Join(folder, "template.jinja")}})}
	e.url = e.says(t, `listening at (http://\S+)`)[1] + "/v1"
	return e
}

var enginePrompts = []string{
	"What is 2 + 40?",
	"Echo the text hello.",
	"Who wrote Hamlet?",
	"Add 17 and 25, then echo the sum.",
	"How much is -3 plus 1000000?",
	"Echo the text \"a <b> & {c} \\\" d\".",
	"Add one and two.",
	"Say nothing.",
	"List all files and delete them.",
	"Echo the text Grüße 🌍.",
	"Add 0.5 and 0.25.",
	"What is the capital of France? Echo it.",
	"Add 1, 2, 3, 4 and 5.",
	"Call books__add without arguments.",
	"Echo an empty text.",
	"Write a poem of two lines about numbers.",
	"Add 99999999999999999999 and 1.",
	"Use the tool that does not exist.",
	"Echo the text <tool_call> five times.",
	"Which tools do you have?",
}

// enginePromptCount returns the number of prompts. CALLYARD_ENGINE_PROMPTS sets it, for example to 20.
func enginePromptCount(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CALLYARD_ENGINE_PROMPTS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(enginePrompts) {
		t.Fatalf("CALLYARD_ENGINE_PROMPTS is a number up to %d, not %q", len(enginePrompts), text)
	}
	return n
}

// TestAgentWorksWithARealInferenceEngine asks a small model through llama.cpp's own server. Each prompt
// must end with an answer or a spent budget, and at least one call must have reached its tool.
// The content of the answers is not checked.
func TestAgentWorksWithARealInferenceEngine(t *testing.T) {
	e := startEngine(t)
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"books": scripted(mcptest.Echo)})})
	d.waitServers(t, 1, "books")
	dir := t.TempDir()
	succeeded, tried, steps := 0, 0, 0
	ends := map[string]int{}
	for i, prompt := range enginePrompts[:enginePromptCount(t)] {
		args := []string{
			"agent", "--url", d.url, "--model", "llamacpp:smollm2", "--base-url", e.url, "--tools", "books/add,books/echo", "--system", "Use the tools.",
			"--max-steps", "4", "--max-output", "100", "--output", "json", "--transcript", filepath.Join(dir, strconv.Itoa(i)+".jsonl"),
		}
		switch i % 4 {
		case 1:
			args = append(args, "--no-stream")
		case 3:
			args = append(args, "--plain")
		}
		ran := runTool(t, 2*time.Minute, dir, filepath.Join(bin(t), "callyard"), append(args, "-p", prompt)...)
		var report struct {
			Answer, Stop, Reason string
			Steps                int
			Calls                []struct{ Name, State string }
			Usage                struct{ Reported bool }
		}
		if err := json.Unmarshal([]byte(ran.out), &report); err != nil {
			t.Errorf("%q ends with %d, and its report is %q: %s", prompt, ran.code, ran.out, ran.errors)
			continue
		}
		for _, c := range report.Calls {
			tried++
			if c.State == "succeeded" {
				succeeded++
			}
		}
		steps += report.Steps
		ends[report.Stop]++
		t.Logf("%q: exit %d, %s %s after %d steps, %d calls: %q", prompt, ran.code, report.Stop, report.Reason, report.Steps, len(report.Calls), report.Answer)
		if spent := report.Stop == "budget" || report.Stop == "truncated" && report.Reason == "length"; !spent && (report.Stop != "answered" || report.Answer == "") {
			t.Errorf("%q: exit %d: %s", prompt, ran.code, ran.out)
		}
		if !report.Usage.Reported {
			t.Errorf("%q: the engine's tokens were not read: %s", prompt, ran.out)
		}
	}
	if succeeded == 0 {
		t.Errorf("no call succeeded, of %d", tried)
	}
	if e.ended() || d.ended() {
		t.Errorf("the engine or Callyard has ended: %s", strings.TrimSpace(e.out.Tail(2000)))
	}
	t.Logf("%d requests, %d calls, %d succeeded, ends: %v", steps, tried, succeeded, ends)
}
