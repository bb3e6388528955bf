package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToolsAreConvertedWithoutAServer(t *testing.T) {
	plainEnvironment(t)
	file := filepath.Join(t.TempDir(), "tools.json")
	const tools = `{"model":"m","tools":[{"type":"function","function":{"name":"echo","parameters":{"type":"object","properties":{"n":{"const":9007199254740993}}}}}]}`
	if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"echo","input_schema":{"type":"object","properties":{"n":{"const":9007199254740993}}}}]` + "\n"
	for _, args := range [][]string{{file}, {"-"}, nil} {
		stdout, stderr, code := typed(t, tools, append([]string{"tools", "convert", "--from", "openai", "--to", "anthropic"}, args...)...)
		if code != exitOK || stdout != want || !strings.Contains(stderr, "dropped /tools/model: ") {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	stdout, stderr, code := typed(t, tools, "tools", "convert", "--from", "openai", "--to", "mcp", "--json")
	if code != exitOK || stderr != "" || !strings.HasPrefix(stdout, `{"from":"openai","to":"mcp","tools":[{"name":"echo","inputSchema":`) || !strings.Contains(stdout, `"notes":[{"kind":"dropped","pointer":"/tools/model"`) {
		t.Errorf("with --json: code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestUnconvertibleToolCallExitsWithItsCode(t *testing.T) {
	plainEnvironment(t)
	const calls = `[{"type":"tool_use","id":"1","name":"echo","input":{"a":1}},{"type":"tool_use","id":"2","name":"echo","input":[]}]`
	stdout, stderr, code := typed(t, calls, "tools", "convert", "--from", "anthropic", "--to", "gemini", "--calls")
	if code != exitSkipped || stdout != `[{"functionCall":{"id":"1","name":"echo","args":{"a":1}}}]`+"\n" ||
		!strings.Contains(stderr, "skipped /calls/1: The arguments are not a JSON object.") || !strings.Contains(stderr, "1 part could not be converted") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	for _, args := range [][]string{{"--from", "openai"}, {"--from", "openai", "--to", "x"}, {"--from", "openai", "--to", "mcp", "/does/not/exist"}, {"--from", "openai", "--to", "mcp"}} {
		if _, stderr, code := typed(t, "{", append([]string{"tools", "convert"}, args...)...); code != exitUsage || stderr == "" {
			t.Errorf("%v: code %d, %q", args, code, stderr)
		}
	}
}
