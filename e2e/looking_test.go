package e2e

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

func TestGetRequestsApproveNothing(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo))})})
	d.waitServers(t, 1, "pay")
	var all []held
	for i := range 50 {
		all = append(all, d.hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"looked at %d"}`, effects, i)))
	}
	var spec struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	d.read(t, "/openapi.json", &spec)
	if len(spec.Paths) < 20 {
		t.Fatalf("the document has %d paths", len(spec.Paths))
	}
	parameter := regexp.MustCompile(`\{[^}]+\}`)
	first := all[0]
	looked := 0
	for path := range spec.Paths {
		for _, value := range []string{first.ID, first.CallID, first.ApprovalID, "pay", "effect"} {
			p := parameter.ReplaceAllString(path, url.PathEscape(value))
			for _, query := range []string{"", "?confirm=true", "?_method=POST&confirm=true"} {
				for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
					if method == "GET" && strings.HasSuffix(path, "/events") {
						continue // an endless response
					}
					if _, err := d.try(method, p+query, "", "X-HTTP-Method-Override: POST", "Purpose: prefetch"); err != nil {
						t.Errorf("%s %s: %v", method, p, err)
					}
					looked++
				}
			}
		}
	}
	for _, h := range all {
		if s := d.callStateNow(t, h.CallID); s.State != "held" {
			t.Errorf("after %d looks call %s is %s", looked, h.CallID, s.State)
		}
	}
	if got := readEffects(t, effects); len(got) != 0 {
		t.Errorf("the effects are %v", got)
	}
	if a := d.confirm(t, first.ID, "true"); a.status != 200 {
		t.Errorf("afterwards the token cannot be spent: %d %s", a.status, a.body)
	}
}
