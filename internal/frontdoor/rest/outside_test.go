package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/openapitest"
)

// exist returns values of path parameters, and bodies about servers that exist.
func exist() openapitest.Known {
	return openapitest.Known{
		Path: map[string]string{"id": "demo", "tenant": "default", "tool": "echo", "name": "greet", "uri": "demo://resource/1"},
		Bodies: map[string]string{
			"POST /calls":   `{"server":"demo","tool":"echo","arguments":{"message":"x"}}`,
			"POST /batches": `{"calls":[{"custom_id":"a","server":"demo","tool":"echo","arguments":{"message":"x"}}]}`,
			"POST /servers": `{"id":"files","command":"x","docker":{"image":"x"}}`,
		},
	}
}

func try(f *fabric, r *openapitest.Request) answer {
	f.t.Helper()
	var header []string
	for name, values := range r.Header {
		header = append(header, name, values[0])
	}
	return f.do(r.Method, r.Path, string(r.Body), header...)
}

func TestInputsOutsideTheOpenAPIDocumentAreRefusedByName(t *testing.T) {
	t.Parallel()
	f := openFabric(t, func(o *Options) { o.AllowAddServers = true })
	all, err := openapitest.Outside(documentOf(t, f), exist())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 150 {
		t.Errorf("only %d requests", len(all))
	}
	for i := range all {
		switch about := all[i].Path + " " + all[i].Name; {
		case strings.HasPrefix(about, "/metrics"): // scrapers add their own parameters
			continue
		case about == "/batches arguments": // they are validated when the call runs
			continue
		case about == "/servers env", about == "/servers headers": // numbers are accepted as written
			continue
		}
		a := try(f, &all[i])
		if all[i].Path == "/batches" && a.status == http.StatusCreated && strings.Contains(string(a.body), `"refused":1`) {
			a.status = http.StatusBadRequest // only the line is refused
		}
		if a.status < 400 || a.status > 499 || a.status == http.StatusNotFound || a.status == http.StatusForbidden || !strings.Contains(string(a.body), all[i].Name) {
			t.Errorf("%s is not refused by its name: %d %.300s", &all[i], a.status, a.body)
		}
	}
}

func TestInputsInsideTheOpenAPIDocumentAreNotRefused(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	all, err := openapitest.Inside(documentOf(t, f), exist())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		switch all[i].Name {
		case "cursor", "principal", "uri", "callback_url", httpapi.HeaderCallback, "Prefer", "stream", "follow", "wait":
			continue // valid values are not in the document, or the request waits
		}
		if about := strings.SplitAfter(all[i].Path, "=")[0]; about == "/servers/demo/resources?timeout_ms=" || about == "/tools?strict=" || about == "/tools?defer_loading=" || about == "/preflight?tool=" || about == "/events?include=" || about == "/state?dry_run=" {
			continue // they require other parameters or headers, name a tool, or the answer does not end
		}
		if a := try(f, &all[i]); a.status >= 400 && a.status != http.StatusNotFound && a.status != http.StatusGatewayTimeout && strings.Contains(string(a.body), all[i].Name) {
			t.Errorf("%s is refused, and the document allows it: %d %.300s", &all[i], a.status, a.body)
		}
	}
}
