package rest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/launch/openapi"
)

// imported imports the document of the server demo as a server of another fabric.
func imported(t *testing.T, f *fabric) (*openapi.Server, *adapt.Offer) {
	t.Helper()
	s := openapi.New(openapi.Config{ID: "above", OpenAPI: config.OpenAPI{Document: f.url + "/servers/demo/openapi.json"}, MaxResult: 1 << 20})
	t.Cleanup(s.CloseIdle)
	offer, err := s.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, offer
}

func TestServerOpenAPIDocumentCanBeImportedAndCalled(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	s, offer := imported(t, f)
	var names []string
	for _, tool := range offer.Tools {
		names = append(names, tool.Name)
		if tool.Name != "demo__strict" {
			continue
		}
		var def struct {
			InputSchema struct {
				Properties struct {
					Body json.RawMessage `json:"body"`
				} `json:"properties"`
				Required []string                   `json:"required"`
				Defs     map[string]json.RawMessage `json:"$defs"`
			} `json:"inputSchema"`
		}
		if err := json.Unmarshal(tool.Raw, &def); err != nil || !slices.Equal(def.InputSchema.Required, []string{"body"}) {
			t.Errorf("%v: %s", err, tool.Raw)
		}
		if got := string(def.InputSchema.Defs["demo__strict_input"]); !strings.Contains(got, `"n":{"type":"integer"}`) || !strings.Contains(got, `"required":["n"]`) {
			t.Errorf("the schema is not there: %s", tool.Raw)
		}
	}
	// The importer refuses a path with two dots, even if they are escaped.
	if len(names) != len(definitions.Tools)-1 || !slices.Contains(names, "demo__echo") || len(offer.Notes) == 0 {
		t.Errorf("the tools are %v, notes %v", names, offer.Notes)
	}
	const arguments = `{ "n":9007199254740993,"é":"\u00e9" }`
	for _, name := range names {
		if !strings.HasPrefix(name, "demo__a_b") && name != "demo__echo" {
			continue
		}
		result, err := s.Call(t.Context(), name, json.RawMessage(`{"body":`+arguments+`}`))
		if err != nil || !strings.Contains(string(result), "hologram") || string(f.Worker.Last().Payload) != arguments {
			t.Errorf("%s: %v %s, the tool got %s", name, err, result, f.Worker.Last().Payload)
		}
	}
	if got := f.Worker.Last().Tool; got != "a/b" && got != "echo" {
		t.Errorf("the tool was %s", got)
	}
}

func TestATypedOperationIsHeldLikeEveryCall(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	hold(f)
	s, _ := imported(t, f)
	result, err := s.Call(t.Context(), "demo__echo", json.RawMessage(`{"body":{"x":1}}`))
	if err != nil || !strings.Contains(string(result), `requires_confirmation`) {
		t.Errorf("%v %s", err, result)
	}
	if f.Worker.Count() != 0 {
		t.Error("a call that is held has run")
	}
}

func TestServerOpenAPIDocumentDescribesItsOperations(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a := f.do("GET", "/servers/demo/openapi.json", "")
	var document struct {
		OpenAPI string
		Paths   map[string]struct {
			Post struct {
				OperationID string
				RequestBody struct{ Required bool }
				Responses   map[string]json.RawMessage
				Omitted     []struct{ Pointer string } `json:"x-callyard-omitted"`
			}
		}
	}
	if err := json.Unmarshal(a.body, &document); err != nil || a.status != http.StatusOK || a.header.Get("Content-Type") != "application/openapi+json" {
		t.Fatalf("%d %v %v", a.status, err, a.header)
	}
	if document.OpenAPI != "3.1.0" || len(document.Paths) != len(definitions.Tools) {
		t.Errorf("OpenAPI %s with %d paths", document.OpenAPI, len(document.Paths))
	}
	for path, item := range document.Paths {
		// The documented operations are served, even with unusual names.
		if strings.HasSuffix(path, "/hang") {
			continue // it would not end
		}
		if got := f.do("POST", path, `{"n":1}`, "Accept", "application/json", "Prefer", "respond-async"); got.status != http.StatusAccepted && !strings.Contains(path, "broken") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		for _, status := range []string{"200", "202", "401", "403", "404", "422", "429", "503", "504", "default"} {
			if item.Post.Responses[status] == nil {
				t.Errorf("%s has no %s", path, status)
			}
		}
		if item.Post.RequestBody.Required != (item.Post.OperationID == "demo__strict") || (len(item.Post.Omitted) > 0) != (item.Post.OperationID == "demo__broken") {
			t.Errorf("%s: %+v", path, item.Post)
		}
	}
	for _, path := range []string{"/servers/nope/openapi.json", "/servers/demo/openapi.json?x=1"} {
		problemOf(t, f.do("GET", path, ""))
	}
}

func TestSetOpenAPIDocumentUsesTheNamesOfTheSet(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	if made := f.do("PUT", "/sets/mine", `{"include":[{"server":"demo","tool":"strict"},{"server":"demo","tool":"a/b"}],"names":{"prefix":"my"}}`); made.status != 200 {
		t.Fatalf("%d %s", made.status, made.body)
	}
	a := f.do("GET", "/sets/mine/openapi.json", "")
	var document struct {
		Info  struct{ Title string }
		Paths map[string]struct{ Post struct{ OperationID string } }
	}
	if err := json.Unmarshal(a.body, &document); err != nil || a.status != http.StatusOK || a.header.Get("Content-Type") != "application/openapi+json" {
		t.Fatalf("%d %v %s", a.status, err, a.body)
	}
	if document.Info.Title != "Tools of the set mine" || len(document.Paths) != 2 || document.Paths["/servers/demo/tools/strict"].Post.OperationID != "my__strict" {
		t.Errorf("%s", a.body)
	}
	odd := document.Paths["/servers/demo/tools/a%2Fb"].Post.OperationID
	if !strings.HasPrefix(odd, "my__a-b") {
		t.Errorf("the operation of a/b is %q", odd)
	}
	for path := range document.Paths {
		if got := f.do("POST", path, `{"n":1}`); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	// POST /tool-calls accepts the names of the operations for the set.
	_, out := toolCallsOf(t, f, "/tool-calls?set=mine", `{"tool_calls":[`+openAICall("c", odd, `{}`)+`]}`)
	if out.Calls[0].State != "succeeded" || out.Calls[0].Tool != "a/b" {
		t.Errorf("%+v", out.Calls[0])
	}
	problemOf(t, f.do("GET", "/sets/none/openapi.json", ""))
}
