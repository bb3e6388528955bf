package cli

import (
	"strings"
	"testing"
)

func TestToolsArePrintedInProviderFormat(t *testing.T) {
	plainEnvironment(t)
	const whole = `{"format":"openai","tools":[{"type":"function","function":{"name":"demo__add","parameters":{"type":"object","properties":{"n":{"maximum":9007199254740993}}}}}],` +
		`"count":1,"tokens":42,"omitted":3,"names":[{"name":"demo__add","server":"demo","tool":"add","tokens":42}],"loosened":[{"name":"demo__add","pointer":"/not","message":"not {}"}],"notes":["Too many."],"unknown":["away"]}`
	d := openDoor(t, map[string]answer{
		"GET /tools?budget_tokens=50&format=openai&max_tools=1&query=add+up&server=demo&strict=true": jsonAnswer(whole),
		"GET /tools?format=nonsense": problemAnswer(400, `{"status":400,"detail":"Parameter format: expected one of them."}`),
	})
	args := []string{"tools", "demo", "--format", "openai", "--max-tools", "1", "--budget-tokens", "50", "--search", "add up", "--strict", "--url", d.URL}
	stdout, stderr, code := typed(t, "", args...)
	if code != exitOK || !strings.HasPrefix(stdout, `[{"type":"function","function":{"name":"demo__add"`) || !strings.Contains(stdout, "9007199254740993") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	for _, says := range []string{"1 tools, about 42 tokens; 3 left out.", "Looser than the tool: demo__add /not: not {}", "Too many.", "server away"} {
		if !strings.Contains(stderr, says) {
			t.Errorf("stderr does not say %q: %q", says, stderr)
		}
	}
	if stdout, _, code = typed(t, "", append(args, "--json")...); code != exitOK || strings.TrimSpace(stdout) != whole {
		t.Errorf("with --json: code %d, %q", code, stdout)
	}
	if _, stderr, code = typed(t, "", "tools", "--format", "nonsense", "--url", d.URL); code != exitUsage || !strings.Contains(stderr, "use one of mcp, openai, openai-responses") {
		t.Errorf("an unknown format: code %d, %q", code, stderr)
	}
}
