package fabric_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/e2e/fabric"
)

func TestToolCallIsHeldUntilOpsApproves(t *testing.T) {
	f := fabric.Start(t, fabric.Options{
		Policy: `
rules:
  - match: {server: demo, tool: add}
    approval: {groups: [ops]}
`})

	r, err := http.NewRequestWithContext(t.Context(), "POST", f.URL()+"/servers/demo/tools/add", strings.NewReader(`{"a":2,"b":40}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", f.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusAccepted || !strings.Contains(string(body), `"approval_id"`) {
		t.Errorf("%v %s %s", err, answer.Status, body)
	}
}
