package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// providerTools is the response of GET /tools in the format of a provider.
type providerTools struct {
	Tools []json.RawMessage `json:"tools"`
	Count int               `json:"count"`
	Names []struct {
		Name   string `json:"name"`
		Server string `json:"server"`
		Tool   string `json:"tool"`
	} `json:"names"`
}

func (p *providerTools) name(t testing.TB, server, tool string) string {
	t.Helper()
	for _, n := range p.Names {
		if n.Server == server && n.Tool == tool {
			return n.Name
		}
	}
	t.Fatalf("%s of %s is not listed", tool, server)
	return ""
}

// toolCalls is the answer to POST /tool-calls.
type toolCalls struct {
	Format   string            `json:"format"`
	Messages []json.RawMessage `json:"messages"`
	Calls    []struct {
		State        string          `json:"state"`
		CallID       string          `json:"call_id"`
		Confirmation *held           `json:"confirmation"`
		Problem      json.RawMessage `json:"problem"`
	} `json:"calls"`
}

func (d *door) toolCalls(t testing.TB, body string) toolCalls {
	t.Helper()
	a := d.ask(t, "POST", "/tool-calls", body)
	if a.status != http.StatusOK {
		t.Fatalf("POST /tool-calls answers %d: %s", a.status, a.body)
	}
	var out toolCalls
	decode(t, a.body, &out)
	return out
}

// written encodes arguments like OpenAI: JSON in a string.
func written(arguments string) string {
	text, _ := json.Marshal(arguments)
	return string(text)
}

func TestToolCallsOfEveryProviderWork(t *testing.T) {
	all, folder := realServers(t)
	write(t, filepath.Join(folder, "note.txt"), "a note of the night\n")
	up := startUp(t, setup{servers: serversFile(t, all), env: []string{quickStop}})
	up.waitServers(t, 1, keys(all)...)
	for format, block := range map[string]func(echo, read, note string) string{
		"openai": func(echo, read, note string) string {
			return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":%q,"arguments":%s}},{"id":"b","type":"function","function":{"name":%q,"arguments":%s}}]}`,
				echo, written(`{"message":"good evening"}`), read, written(note))
		},
		"openai-responses": func(echo, read, note string) string {
			return fmt.Sprintf(`{"output":[{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"a","name":%q,"arguments":%s},{"type":"function_call","call_id":"b","name":%q,"arguments":%s}]}`,
				echo, written(`{"message":"good evening"}`), read, written(note))
		},
		"anthropic": func(echo, read, note string) string {
			return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":%q,"input":{"message":"good evening"}},{"type":"tool_use","id":"b","name":%q,"input":%s}]}`, echo, read, note)
		},
		"gemini": func(echo, read, note string) string {
			return fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"name":%q,"args":{"message":"good evening"}}},{"functionCall":{"name":%q,"args":%s}}]}`, echo, read, note)
		},
	} {
		var list providerTools
		up.read(t, "/tools?format="+format, &list)
		if len(list.Names) != list.Count || list.Count < 60 {
			t.Errorf("%s: %d tools with %d names", format, list.Count, len(list.Names))
		}
		note := fmt.Sprintf(`{"path":%q}`, filepath.Join(folder, "note.txt"))
		got := up.toolCalls(t, block(list.name(t, "everything", "echo"), list.name(t, "filesystem", "read_text_file"), note))
		said := string(mustJSON(t, got.Messages))
		if got.Format != format || len(got.Calls) != 2 || got.Calls[0].State != "succeeded" || got.Calls[1].State != "succeeded" {
			t.Errorf("%s: %+v", format, got)
		}
		if first, second := strings.Index(said, "Echo: good evening"), strings.Index(said, "a note of the night"); first < 0 || second < first {
			t.Errorf("%s answers out of order, or not: %s", format, said)
		}
	}
	// An image is returned as an image.
	got := up.toolCalls(t, `[{"type":"tool_use","id":"i","name":"everything__get-tiny-image","input":{}}]`)
	if said := string(mustJSON(t, got.Messages)); !strings.Contains(said, `"type":"image","source":{"type":"base64","media_type":"image/png"`) {
		t.Errorf("an image becomes %.600s", said)
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestProviderToolCallsPassTheGate(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, "rules:\n  - {name: no-adding, match: {tool: add}, deny: nobody adds here}\n  - {name: effects, match: {tool: effect}, level: 2}\n  - {name: rest, match: {tool: \"*\"}, level: 1}\n")
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"pay": scripted(mcptest.Echo)}), flags: []string{"--policy", policy}, env: []string{quickStop}})
	d.waitServers(t, 1, "pay")
	got := d.toolCalls(t, fmt.Sprintf(`[{"type":"tool_use","id":"1","name":"pay__add","input":{"a":1,"b":2}},{"type":"tool_use","id":"2","name":"pay__effect","input":{"path":%q,"id":"x"}},{"type":"tool_use","id":"3","name":"pay__echo","input":{"text":"hi"}}]`, effects))
	for i, want := range []string{"failed", "held", "succeeded"} {
		if got.Calls[i].State != want {
			t.Errorf("call %d is %s, not %s: %s", i+1, got.Calls[i].State, want, got.Calls[i].Problem)
		}
	}
	if !strings.Contains(string(got.Calls[0].Problem), "nobody adds here") {
		t.Errorf("the denied call says %s", got.Calls[0].Problem)
	}
	c := got.Calls[1].Confirmation
	if c == nil || c.ID == "" {
		t.Fatalf("the held call has no confirmation: %+v", got)
	}
	if n := len(readEffects(t, effects)); n != 0 {
		t.Fatalf("the held call ran %d times before its yes", n)
	}
	if a := d.confirm(t, c.ID, "true"); a.status != http.StatusOK {
		t.Errorf("confirmed: %d %s", a.status, a.body)
	}
	if n := readEffects(t, effects)["x"]; n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
