package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/oasdiff/yaml"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/validate"
)

// shown is an offer as the golden files have it.
func shown(t *testing.T, s *Server) string {
	t.Helper()
	o, err := s.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString(o.Title + " " + o.Version + "\n")
	for _, tool := range o.Tools {
		out.WriteString("\n" + tool.From + "\n")
		if err := json.Indent(&out, tool.Raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	for _, note := range o.Notes {
		out.WriteString("\nnote: " + note + "\n")
	}
	return out.String()
}

func TestToolsOfDocumentsMatchGoldenFiles(t *testing.T) {
	for name, cfg := range map[string]config.OpenAPI{
		"petstore": {Document: "testdata/petstore.yaml", BaseURL: "https://pets.invalid/v1", Credentials: secrets()},
		"shop":     {Document: "testdata/shop.json", BaseURL: "https://shop.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{ID: name, OpenAPI: cfg})
			got := shown(t, s)
			golden(t, "testdata/"+name+".golden", got)
			if strings.Contains(got, "secret") && !strings.Contains(got, `"secret"`) {
				t.Error("a credential shows in a tool")
			}
			if again := shown(t, open(t, Config{ID: name, OpenAPI: cfg})); again != got {
				t.Error("the tools differ when they are made again")
			}
		})
	}
}

func TestToolSchemasValidateArgumentsLikeTheDocument(t *testing.T) {
	srv := newService(t)
	pets := petstore(t, srv)
	shop := open(t, Config{ID: "shop", OpenAPI: config.OpenAPI{Document: "testdata/shop.json", BaseURL: srv.URL}})
	for _, c := range []struct {
		s         *Server
		tool      string
		arguments string
		good      bool
	}{
		{pets, "addPet", `{"body":{"name":"Rex","secret":"s","kind":null,"owner":null,"weight":0.5}}`, true},
		{pets, "addPet", `{"body":{"name":"Rex","weight":0}}`, false},
		{pets, "addPet", `{"body":{"name":"Rex","kind":"cow"}}`, false},
		{pets, "addPet", `{"body":{"name":"Rex","owner":{"pets":[{"name":"Tom","kind":"cow"}]}}}`, false},
		{pets, "addPet", `{"body":{}}`, false},
		{pets, "addPet", `{}`, false},
		{pets, "listPets", `{"limit":0}`, false},
		{pets, "listPets", `{"limit":1,"kinds":["cat"]}`, true},
		{pets, "listPets", `{"limit":1,"X-Key":"mine"}`, false},
		{pets, "uploadPhoto", `{"petId":"1","body":{"caption":"x"}}`, false},
		{shop, "items_get", `{"id":9007199254740993}`, true},
		{shop, "items_get", `{"id":"9"}`, false},
		{shop, "items_patch", `{"id":1,"body":{"code":9007199254740993,"size":[1,"kg"],"x-a":"b"}}`, true},
		{shop, "items_patch", `{"id":1,"body":{"code":9007199254740992}}`, false},
		{shop, "items_patch", `{"id":1,"body":{"size":[1,"lb"]}}`, false},
		{shop, "items_patch", `{"id":1,"body":{"other":1}}`, false},
		{shop, "items-get", `{"sort":null,"price":{"min":1}}`, true},
		{shop, "items-get", `{"price":{"min":0}}`, false},
	} {
		var tool struct {
			Input json.RawMessage `json:"inputSchema"`
		}
		op := current(t, c.s).byName[c.tool]
		if op == nil {
			t.Fatalf("there is no tool %q", c.tool)
		}
		if err := json.Unmarshal(op.tool, &tool); err != nil {
			t.Fatal(err)
		}
		if got := judge(t, tool.Input, c.arguments); got != c.good {
			t.Errorf("%s %s is found good: %v, want %v", c.tool, c.arguments, got, c.good)
		}
	}
}

func TestLargeSchemaIsTruncatedDeterministicallyWithANote(t *testing.T) {
	var types strings.Builder
	for i := range 200 {
		fmt.Fprintf(&types, `"T%d":{"type":"object","properties":{`, i)
		for j := range 20 {
			fmt.Fprintf(&types, `"a%d":{"$ref":"#/components/schemas/T%d"},"b%d":{"type":"string"},`, j, (i*7+j*13)%200, j)
		}
		fmt.Fprint(&types, `"z":{"anyOf":[{"$ref":"#/components/schemas/T1"},{"$ref":"#/components/schemas/T2"}]}}},`)
	}
	document := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"post":{"operationId":"a",
		"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/T0"}}}},
		"responses":{"200":{"description":"ok","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Loop"}}}}}}}},
		"components":{"schemas":{` + types.String() + `"Loop":{"anyOf":[{"$ref":"#/components/schemas/Loop"},{"$ref":"#/components/schemas/Loop"},{"$ref":"#/components/schemas/Loop"}]}}}}`
	cfg := Config{ID: "x", OpenAPI: config.OpenAPI{Document: write(t, document), BaseURL: "https://h.invalid"}}
	first := shown(t, open(t, cfg))
	if !strings.Contains(first, "are omitted") || len(first) > 2<<20 {
		t.Errorf("a schema of %d bytes is not cut, or not said to be", len(first))
	}
	for range 5 {
		if shown(t, open(t, cfg)) != first {
			t.Fatal("it is cut another way the next time")
		}
	}
}

func TestToolOfHEADHasNoOutputSchema(t *testing.T) {
	const answer = `"responses":{"200":{"description":"ok","content":{"application/json":{"schema":{"type":"object"}}}}}`
	s := open(t, Config{ID: "x", OpenAPI: config.OpenAPI{BaseURL: "https://h.invalid", Document: write(t,
		`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"head":{"operationId":"head",`+answer+`},"get":{"operationId":"get",`+answer+`}}}}`)}})
	offer, err := s.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range offer.Tools {
		var d struct{ OutputSchema json.RawMessage }
		if err := json.Unmarshal(tool.Raw, &d); err != nil {
			t.Fatal(err)
		}
		if got, want := d.OutputSchema != nil, tool.Name == "get"; got != want {
			t.Errorf("%s has an outputSchema: %v, want %v: an answer to HEAD has no body", tool.Name, got, want)
		}
	}
}

func TestFiltersChooseByTagMethodPathAndOperation(t *testing.T) {
	offer := func(include, exclude []config.Selector) []string {
		s := open(t, Config{ID: "pets", OpenAPI: config.OpenAPI{
			Document: "testdata/petstore.yaml", BaseURL: "https://pets.invalid", Credentials: secrets(), Include: include, Exclude: exclude,
		}})
		o, err := s.Offer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := toolNames(o)
		slices.Sort(names)
		for _, note := range o.Notes {
			if strings.Contains(note, "matches no operation") {
				names = append(names, note)
			}
		}
		return names
	}
	for _, c := range []struct {
		name             string
		include, exclude []config.Selector
		want             []string
	}{
		{"tag", []config.Selector{{Tags: []string{"orders"}}}, nil, []string{"order", "setNote"}},
		{"tag and method", []config.Selector{{Tags: []string{"orders"}, Methods: []string{"put"}}}, nil, []string{"setNote"}},
		{"either", []config.Selector{{Operations: []string{"order"}}, {Paths: []string{"/notes"}}}, nil, []string{"order", "setNote"}},
		{"path", []config.Selector{{Paths: []string{"/pets/*"}}}, nil, []string{"delete_pet", "getPet", "put_pets_petId"}},
		{"deep path", []config.Selector{{Paths: []string{"/pets/**"}, Methods: []string{"GET"}}}, nil, []string{"getPet", "getPhoto"}},
		{"include with exclude", []config.Selector{{Tags: []string{"pets"}, Methods: []string{"GET"}}}, []config.Selector{{Operations: []string{"*Photo", "styles"}}}, []string{"getPet", "listPets"}},
		{"misspelt", []config.Selector{{Tags: []string{"orders"}}}, []config.Selector{{Tags: []string{"odrers"}}},
			[]string{"order", "setNote", "exclude[0] matches no operation of the document; correct it."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, offer(c.include, c.exclude)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathPatternsMatchBySegment(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/a", "/a", true}, {"/a", "/ab", false}, {"/*", "/a", true}, {"/*", "/a/b", false}, {"/**", "/a/b", true}, {"**", "/a/b", true},
		{"/a/*/c", "/a/b/c", true}, {"/a/*/c", "/a/b/b/c", false}, {"/a/**/c", "/a/b/b/c", true}, {"/a/**", "/a", false}, {"/{*}", "/{id}", true},
		{"/a*b*c", "/axbxc", true}, {"/a*b*c", "/axb/c", false}, {"*", "", true}, {"/*/*/", "/a/b/", true},
	} {
		if got := globPath(c.pattern, c.path); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.path, got)
		}
	}
}

func TestToolNamesAreValidUniqueAndStable(t *testing.T) {
	ops := func(list ...string) []*operation {
		var out []*operation
		for i, id := range list {
			out = append(out, &operation{id: id, method: "GET", template: "/" + strings.Repeat("p", i+1)})
		}
		return out
	}
	list := ops("get pet", "get_pet", "", "дом", strings.Repeat("long", 40), strings.Repeat("long", 41), "same", "same")
	names(list)
	seen := map[string]bool{}
	for _, op := range list {
		if seen[op.name] || op.name == "" || len(op.name) > longestName || legalName(op.name) != op.name {
			t.Errorf("%q has the name %q", op.id, op.name)
		}
		seen[op.name] = true
	}
	if list[1].name != "get_pet" || list[2].name != "get_ppp" || list[0].name == "get_pet" {
		t.Errorf("names %q, %q, %q", list[0].name, list[1].name, list[2].name)
	}
	before := []string{list[0].name, list[1].name, list[4].name}
	more := append(ops("new"), list...)
	more[0].template = "/other"
	names(more)
	if diff := cmp.Diff(before, []string{list[0].name, list[1].name, list[4].name}); diff != "" {
		t.Errorf("a new operation changes names (-before +after):\n%s", diff)
	}
}

func TestAnUnusableDocumentIsRefusedWithTheFix(t *testing.T) {
	paths := `"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"description":"ok"}}}}}`
	info := `"info":{"title":"t","version":"1"}`
	for name, c := range map[string]struct {
		document string
		cfg      config.OpenAPI
		want     string
	}{
		"swagger":                             {document: `{"swagger":"2.0",` + info + `,` + paths + `}`, want: "not an OpenAPI 3 document"},
		"4.0":                                 {document: `{"openapi":"4.0.0",` + info + `,` + paths + `}`, want: "not 3.0 or 3.1"},
		"no paths":                            {document: `{"openapi":"3.1.0",` + info + `,"paths":{}}`, want: "no paths"},
		"no JSON":                             {document: `{"openapi":`, want: "cannot be used"},
		"YAML with a number as the version":   {document: "openapi: 3.1.0\ninfo: {title: t, version: 1.0}\npaths: {/a: {}}\n", want: `cannot be used: cannot unmarshal number into field Info.version of type string; check`},
		"YAML with a duplicate key":           {document: "openapi: 3.1.0\ninfo: {title: t, version: \"1\"}\npaths: {/a: {}}\npaths: {/b: {}}\n", want: `line 4: mapping key "paths" already defined at line 3; check`},
		"truncated JSON":                      {document: `{"openapi":"3.1.0",`, want: "cannot be used: unexpected end of JSON input; check"},
		"nothing":                             {document: ``, want: "cannot be used"},
		"a list":                              {document: `[]`, want: "cannot be used"},
		"dangling":                            {document: `{"openapi":"3.0.0",` + info + `,"paths":{"/a":{"get":{"parameters":[{"$ref":"#/components/parameters/x"}],"responses":{"200":{"description":"ok"}}}}}}`, want: "cannot be used"},
		"unknown scheme":                      {document: `{"openapi":"3.0.0",` + info + `,` + paths + `}`, cfg: config.OpenAPI{Credentials: map[string]config.Credential{"k": {Value: "hunter2"}}}, want: `"k" matches no security scheme of the document; it has none`},
		"exclude matches every operation":     {document: `{"openapi":"3.0.0",` + info + `,` + paths + `}`, cfg: config.OpenAPI{Exclude: []config.Selector{{Tags: nil, Methods: []string{"GET"}}}}, want: "none of its operations"},
		"value for HTTP basic authentication": {document: `{"openapi":"3.0.0",` + info + `,` + paths + `,"components":{"securitySchemes":{"k":{"type":"http","scheme":"basic"}}}}`, cfg: config.OpenAPI{Credentials: map[string]config.Credential{"k": {Value: "hunter2"}}}, want: `set "username" and "password"`},
		"user name for an API key":            {document: `{"openapi":"3.0.0",` + info + `,` + paths + `,"components":{"securitySchemes":{"k":{"type":"apiKey","in":"query","name":"q"}}}}`, cfg: config.OpenAPI{Credentials: map[string]config.Credential{"k": {Username: "u"}}}, want: `set "value"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Document, c.cfg.BaseURL = write(t, c.document), "https://h.invalid"
			got := fault(t, Config{ID: "x", OpenAPI: c.cfg})
			if !strings.Contains(got, c.want) || strings.Contains(got, "hunter2") {
				t.Errorf("got %s\nwant %q in it", got, c.want)
			}
		})
	}
	for _, path := range []string{"testdata/none.json", "testdata"} {
		if got := fault(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: path, BaseURL: "https://h.invalid"}}); !strings.Contains(got, "correct the path") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestChangedDocumentUpdatesToolsAndBrokenOneDoesNot(t *testing.T) {
	document := `{"openapi":"3.0.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"one","responses":{"200":{"description":"ok"}}}}}}`
	path := write(t, document)
	s := open(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: path, BaseURL: "https://h.invalid"}})
	for _, c := range []struct{ text, want string }{
		{strings.ReplaceAll(document, "one", "two"), "two"},
		{"{", "two"},
		{document, "one"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := s.Offer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{c.want}, toolNames(o)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func judge(t *testing.T, schema json.RawMessage, arguments string) bool {
	t.Helper()
	s, err := validate.Compile(schema)
	if err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	return len(s.Validate([]byte(arguments))) == 0
}

// malformed is a document with a malformed schema in each place where a document has schemas.
const malformed = `
openapi: 3.1.0
info: {title: t, version: "1"}
x-policy: {$ref: ../policies.yaml}
paths:
  /schema/{id}:
    parameters: [{$ref: '#/components/parameters/schema'}]
    post:
      operationId: a
      parameters: [{name: n, in: query, schema: {type: float, minimum: 1, exclusiveMinimum: true, maximum: 9, multipleOf: "5"}}]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Body'}}}}
      responses: {"200": {description: ok, content: {application/json: {schema: {type: object, examples: {one: 1}}}}}}
components:
  parameters:
    schema: {name: id, in: path, required: true, schema: {type: string, maxLength: -1, minLength: 2}}
  schemas:
    Body:
      $recursiveAnchor: true
      type: object
      properties:
        a: {type: string, required: true, examples: {one: x}, uniqueItems: "yes", pattern: 7}
      required: [a, a]
`

func TestAMalformedKeywordOfASchemaIsOmittedAndTheDocumentIsUsed(t *testing.T) {
	asJSON, err := yaml.YAMLToJSON([]byte(malformed))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"YAML": malformed, "JSON": string(asJSON)} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: write(t, text), BaseURL: "https://h.invalid"}})
			o, err := s.Offer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(o.Tools) != 1 {
				t.Fatalf("got the tools %v, want one", toolNames(o))
			}
			var tool struct{ InputSchema, OutputSchema json.RawMessage }
			if err := json.Unmarshal(o.Tools[0].Raw, &tool); err != nil {
				t.Fatal(err)
			}
			for arguments, want := range map[string]bool{
				`{"id":"ab","n":9,"body":{"a":"x"}}`: true,
				`{"id":"a","body":{"a":"x"}}`:        false,
				`{"id":"ab","n":10}`:                 false,
				`{"id":"ab","n":1}`:                  false,
				`{"id":"ab","body":{}}`:              false,
				`{"id":"ab","body":{"a":1}}`:         false,
			} {
				if got := judge(t, tool.InputSchema, arguments); got != want {
					t.Errorf("%s: accepted is %v, want %v, by %s", arguments, got, want, tool.InputSchema)
				}
			}
			judge(t, tool.OutputSchema, `{}`)
			if notes := strings.Join(o.Notes, " "); !strings.Contains(notes, "The document is not fully valid") {
				t.Errorf("the notes do not tell of the malformed schemas: %q", notes)
			}
		})
	}
}

func TestAMalformedDocumentThatRefersElsewhereIsStillRefused(t *testing.T) {
	text := strings.Replace(malformed, "'#/components/schemas/Body'", "other.yaml", 1)
	if got := fault(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: write(t, text), BaseURL: "https://h.invalid"}}); !strings.Contains(got, "cannot be used") {
		t.Errorf("got %s", got)
	}
}
