package frontdoor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestConfirmedCallReportsProgress(t *testing.T) {
	srv := bustest.Start(t)
	startCountingWorker(t, srv).let()
	d := openDoor(t, srv, frontdoor.Options{Policy: policyOf(t, "rules:\n  - {name: ask, match: {tool: slow}, level: 2}\n")})
	call := func(more string) string {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}%s,"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, more)
		_, _, text := d.do("POST", "/mcp/s", body, "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "slow")
		return text
	}
	var asked struct{ Result struct{ RequestState string } }
	if text := call(""); json.Unmarshal([]byte(text), &asked) != nil || asked.Result.RequestState == "" {
		t.Fatal(text)
	}
	got := call(fmt.Sprintf(`,"inputResponses":{"approval":{"action":"accept","content":{"confirm":true}}},"requestState":%q`, asked.Result.RequestState))
	progress, result, ok := strings.Cut(got, `"params":{"progressToken":"p","progress":1}`)
	if !ok || !strings.Contains(progress, "notifications/progress") || !strings.Contains(result, `"run":1`) {
		t.Error(got)
	}
}
