package frontdoor_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestEvaluationsAreListedAndShown(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	var o frontdoor.Options
	o.Config.Evaluations = evaluations(t, "a&<b> run")
	d := openDoor(t, srv, o)
	status, _, body := d.do("GET", "/evaluations", "")
	var list struct {
		Total       int
		Evaluations []struct {
			ID     string
			Scored bool
			F1     *struct{ Mean float64 }
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK || list.Total != 1 || len(list.Evaluations) != 1 || list.Evaluations[0].ID != "a&<b> run" || !list.Evaluations[0].Scored || list.Evaluations[0].F1 == nil {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	const path = "/evaluations/a%26%3Cb%3E%20run"
	if status, _, body := d.do("GET", path, ""); status != http.StatusOK || !strings.Contains(body, `"data":"vault"`) || !strings.Contains(body, `"id":"a&<b> run"`) && !strings.Contains(body, `"id":"a\u0026\u003cb\u003e run"`) {
		t.Errorf("%d %s", status, body)
	}
	status, h, body := d.do("GET", path+"/page", "")
	if csp := h.Get("Content-Security-Policy"); status != http.StatusOK || !strings.HasPrefix(csp, "default-src 'none'") || !strings.HasSuffix(csp, "; sandbox") || !strings.HasPrefix(h.Get("Content-Type"), "text/html") || !strings.Contains(body, "Tool selection: a&amp;&lt;b&gt; run") {
		t.Errorf("%d %v %.300s", status, h, body)
	}
	for _, name := range []string{"none", "%2e%2e", "..%2Fa", "%2Fetc", `..%5Ca`, "a%00"} {
		for _, rest := range []string{"", "/page"} {
			if status, _, body := d.do("GET", "/evaluations/"+name+rest, ""); status != http.StatusNotFound {
				t.Errorf("%s%s: %d %s", name, rest, status, body)
			}
		}
	}
}
