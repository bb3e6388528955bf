package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/openapitest"
	"github.com/callyard/callyard/pkg/schema"
)

// exist returns existing values of path parameters, and bodies for which the document has no
// example.
func exist(approval schema.ApprovalID) openapitest.Known {
	const one = `"kind":"approve","digest":"x","reason":"x","allow":{"until":"2026-01-02T03:04:05Z","pattern":{"kind":"values","values":[{"pointer":"/target"}]}}}`
	return openapitest.Known{
		Path: map[string]string{"id": string(approval)},
		Bodies: map[string]string{
			"POST /approvals/{id}/decisions":     `{` + one,
			"POST /decisions":                    `{"decisions":[{"id":"` + string(approval) + `",` + one + `]}`,
			"POST /permissions/{id}/revocations": `{"reason":"x"}`,
		},
	}
}

func TestRequestsOutsideTheDocumentAreRefusedByName(t *testing.T) {
	f := open(t, people(), func(o *web.Options) { o.DeliveryAdmins = []string{"ops"} })
	known := exist(f.hold(`{"target":"x"}`, requester(), nil).ID)
	document := []byte(f.api("", "GET", "/openapi.json", "").body)
	all, err := openapitest.Outside(document, known)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Errorf("only %d requests", len(all))
	}
	for _, r := range all {
		a := f.api("ada", r.Method, r.Path, string(r.Body), "Content-Type", "application/json")
		if a.status < 400 || a.status > 499 || a.status == http.StatusNotFound || !strings.Contains(a.body, r.Name) {
			t.Errorf("%s is not refused by its name: %d %s", &r, a.status, a.body)
		}
	}
	inside, err := openapitest.Inside(document, known)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range inside {
		if r.Name == "cursor" {
			continue // it is an approval ID
		}
		if a := f.api("ada", r.Method, r.Path, string(r.Body)); a.status != http.StatusOK {
			t.Errorf("%s is refused, and the document allows it: %d %s", &r, a.status, a.body)
		}
	}
	// The forbidden members of a decision depend on its kind.
	for _, body := range []string{`{"kind":"deny","arguments":{}}`, `{"kind":"edit","digest":"x"}`, `{"kind":"edit","digest":"x","arguments":[]}`, `{"kind":"approve","digest":"x","arguments":{}}`} {
		if a := f.api("ada", "POST", "/approvals/"+known.Path["id"]+"/decisions", body); a.status != http.StatusBadRequest || !strings.Contains(a.body, "arguments") {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

func TestDocumentNamesTheServerURL(t *testing.T) {
	f := open(t, people(), nil)
	var doc struct{ Servers []struct{ URL string } }
	decode(t, f.api("", "GET", "/openapi.json", ""), &doc)
	if len(doc.Servers) != 1 || doc.Servers[0].URL != "/" {
		t.Errorf("%+v", doc)
	}
}
