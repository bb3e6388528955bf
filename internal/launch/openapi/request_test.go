package openapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/config"
)

func TestParameterStylesFollowTheSpecification(t *testing.T) {
	const array, object = `["blue","black","brown"]`, `{"R":100,"G":200,"B":150}`
	for _, c := range []struct {
		in, style string
		explode   bool
		value     string
		want      string
	}{
		{"path", "simple", false, `"blue"`, "blue"},
		{"path", "simple", false, array, "blue,black,brown"},
		{"path", "simple", true, array, "blue,black,brown"},
		{"path", "simple", false, object, "R,100,G,200,B,150"},
		{"path", "simple", true, object, "R=100,G=200,B=150"},
		{"path", "label", false, `"blue"`, ".blue"},
		{"path", "label", false, array, ".blue,black,brown"},
		{"path", "label", true, array, ".blue.black.brown"},
		{"path", "label", false, object, ".R,100,G,200,B,150"},
		{"path", "label", true, object, ".R=100.G=200.B=150"},
		{"path", "matrix", false, `"blue"`, ";color=blue"},
		{"path", "matrix", false, array, ";color=blue,black,brown"},
		{"path", "matrix", true, array, ";color=blue;color=black;color=brown"},
		{"path", "matrix", false, object, ";color=R,100,G,200,B,150"},
		{"path", "matrix", true, object, ";R=100;G=200;B=150"},
		{"path", "simple", false, `"a/b c?#%&=+ü"`, "a%2Fb%20c%3F%23%25%26%3D%2B%C3%BC"},
		{"query", "form", true, `"blue"`, "color=blue"},
		{"query", "form", true, `""`, "color="},
		{"query", "form", true, array, "color=blue&color=black&color=brown"},
		{"query", "form", true, `[]`, ""},
		{"query", "form", false, array, "color=blue,black,brown"},
		{"query", "form", true, object, "R=100&G=200&B=150"},
		{"query", "form", false, object, "color=R,100,G,200,B,150"},
		{"query", "form", false, `["a,b","c&d=e"]`, "color=a%2Cb,c%26d%3De"},
		{"query", "spaceDelimited", false, array, "color=blue%20black%20brown"},
		{"query", "pipeDelimited", false, array, "color=blue%7Cblack%7Cbrown"},
		{"query", "deepObject", true, object, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"},
		{"query", "deepObject", true, `{"a":{"b]=&":[1,2]},"n":null}`, "color%5Ba%5D%5Bb%5D%3D%26%5D%5B%5D=1&color%5Ba%5D%5Bb%5D%3D%26%5D%5B%5D=2"},
		{"query", "deepObject", true, array, "color%5B%5D=blue&color%5B%5D=black&color%5B%5D=brown"},
		{"query", "deepObject", true, `[{"R":1},{"R":2,"G":[3]}]`, "color%5B0%5D%5BR%5D=1&color%5B1%5D%5BR%5D=2&color%5B1%5D%5BG%5D%5B%5D=3"},
		{"query", "deepObject", true, `"blue"`, "color=blue"},
		{"query", "deepObject", true, `[]`, ""},
		{"query", "form", true, `9007199254740993`, "color=9007199254740993"},
		{"query", "form", true, `1.0`, "color=1.0"},
		{"query", "form", true, `true`, "color=true"},
		{"header", "simple", false, `" blue "`, "blue"},
		{"header", "simple", false, array, "blue,black,brown"},
		{"header", "simple", false, object, "R,100,G,200,B,150"},
		{"header", "simple", true, object, "R=100,G=200,B=150"},
		{"cookie", "form", true, `"a;b"`, "color=a%3Bb"},
		{"cookie", "form", false, array, "color=blue,black,brown"},
	} {
		p := &param{key: "color", name: "color", in: c.in}
		if why := p.setStyle(c.style, &c.explode); why != "" {
			t.Fatal(why)
		}
		v, err := read(json.RawMessage(c.value))
		if err != nil {
			t.Fatal(err)
		}
		var got string
		switch c.in {
		case "path":
			got, err = p.path(v)
		case "header":
			got, err = p.header(v)
		default:
			var fields []string
			fields, err = p.fields(v, escapePart, func(string) bool { return true })
			got = strings.Join(fields, "&")
		}
		if err != nil || got != c.want {
			t.Errorf("%s %s explode=%v %s: got %q, %v; want %q", c.in, c.style, c.explode, c.value, got, err, c.want)
		}
	}
}

func TestAValueThatHoldsTheSeparatorOfItsStyleIsRefused(t *testing.T) {
	for _, c := range []struct {
		in, style string
		explode   bool
		value     string
	}{
		{"query", "spaceDelimited", false, `["a b"]`},
		{"query", "pipeDelimited", false, `["a|b","c"]`},
		{"query", "pipeDelimited", false, `{"a|b":"c"}`},
		{"path", "label", true, `["a.b"]`},
		{"path", "label", true, `{"a.b":"c"}`},
		{"header", "simple", false, `["a,b"]`},
		{"header", "simple", false, `{"k":"a,b"}`},
		{"header", "simple", true, `{"a=b":"c"}`},
	} {
		p := &param{key: "color", name: "color", in: c.in}
		if why := p.setStyle(c.style, &c.explode); why != "" {
			t.Fatal(why)
		}
		v, err := read(json.RawMessage(c.value))
		if err != nil {
			t.Fatal(err)
		}
		var got any
		switch c.in {
		case "path":
			got, err = p.path(v)
		case "header":
			got, err = p.header(v)
		default:
			got, err = p.fields(v, escapePart, func(string) bool { return true })
		}
		if err == nil || !strings.Contains(err.Error(), "separator") {
			t.Errorf("%s %s explode=%v %s: got %q, %v; want a refusal", c.in, c.style, c.explode, c.value, got, err)
		}
	}
	p := &param{key: "color", name: "color", in: "query", style: "form", reserved: true}
	v, err := read(json.RawMessage(`["a,b"]`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.fields(v, escapeLoosely, func(string) bool { return true }); err == nil {
		t.Errorf("reserved characters that stay: got %q, want a refusal", got)
	}
}

func TestRequestsAreBuiltFromArguments(t *testing.T) {
	srv := newService(t)
	s := petstore(t, srv)
	for _, c := range []struct {
		tool, arguments, method, target string
		header                          map[string]string
		body                            string
	}{
		{
			tool:      "listPets",
			arguments: `{"limit":9007199254740993,"tags":["a b","c"],"kinds":["cat","dog"],"spaced":["x","y"],"piped":["x","y"],"filter":{"a":"1"},"where":{"b":"2"},"raw":"a/b?c=d&e#f","exact":{ "from":1.0 },"session":"s 1","X-Trace":"t"}`,
			method:    "GET",
			target:    "/v1/pets?limit=9007199254740993&tags=a%20b&tags=c&kinds=cat,dog&spaced=x%20y&piped=x%7Cy&filter%5Ba%5D=1&b=2&raw=a/b?c%3Dd%26e%23f&exact=%7B%20%22from%22%3A1.0%20%7D",
			header:    map[string]string{"X-Trace": "t", "Cookie": "session=s%201", "X-Key": "k-secret", "Accept": "application/json, application/problem+json, */*;q=0.1"},
		},
		{tool: "listPets", arguments: `{"limit":null}`, method: "GET", target: "/v1/pets", header: map[string]string{"X-Trace": "", "Cookie": ""}},
		{tool: "getPet", arguments: `{"petId":"a/b","petId_query":"q"}`, method: "GET", target: "/v1/pets/a%2Fb?petId=q"},
		{
			tool: "addPet", arguments: `{"body": { "name" : "Rex", "n": 9007199254740993, "z":1.0 ,"a":"\u00e9"} }`, method: "POST", target: "/v1/pets",
			header: map[string]string{"Content-Type": "application/json"}, body: `{ "name" : "Rex", "n": 9007199254740993, "z":1.0 ,"a":"\u00e9"}`,
		},
		{tool: "delete_pet", arguments: `{"petId":"7"}`, method: "DELETE", target: "/v1/pets/7", header: map[string]string{"Content-Type": ""}},
		{
			tool: "order", arguments: `{"body":{"pet":"a&b","count":2,"notes":["x","y,z"],"address":{"street":"s t"}}}`, method: "POST", target: "/v1/orders",
			header: map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Authorization": "Basic YWRhOnBhc3M6d29yZA=="},
			body:   "pet=a%26b&count=2&notes=x,y%2Cz&address=%7B%22street%22%3A%22s%20t%22%7D",
		},
		{tool: "order", arguments: `{}`, method: "POST", target: "/v1/orders", header: map[string]string{"Content-Type": ""}},
		{tool: "setNote", arguments: `{"body":"a\nb"}`, method: "PUT", target: "/v1/notes", header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, body: "a\nb"},
		{tool: "putPhoto", arguments: `{"petId":"1","body":"AP8="}`, method: "PUT", target: "/v1/pets/1/photo", header: map[string]string{"Content-Type": "image/png"}, body: "\x00\xff"},
		{tool: "admin", arguments: `{}`, method: "GET", target: "/v1/admin?certificate=c%26secret"},
		{
			tool: "styles", arguments: `{"simple":{"a":1},"label":["x"],"matrix":["y","z"],"list":[1,2],"X-List":["p","q"],"X-Object":{"k":"v"},"many":["m","n"]}`,
			method: "GET", target: "/v1/styles/a,1/.x/;matrix=y;matrix=z/1,2.json", header: map[string]string{"X-List": "p,q", "X-Object": "k=v", "Cookie": "many=m,n"},
		},
	} {
		callOK(t, s, c.tool, c.arguments)
		got := srv.last(t)
		if got.Method != c.method || got.Target != c.target || got.Body != c.body {
			t.Errorf("%s: got  %s %s\n%s\nwant %s %s\n%s", c.tool, got.Method, got.Target, got.Body, c.method, c.target, c.body)
		}
		for name, want := range c.header {
			if value := got.Header.Get(name); value != want {
				t.Errorf("%s: %s is %q, want %q", c.tool, name, value, want)
			}
		}
	}
}

func TestAMultipartBodyArrivesInItsParts(t *testing.T) {
	srv := newService(t)
	s := petstore(t, srv)
	callOK(t, s, "uploadPhoto", `{"petId":"1","body":{"photo":"iVBORw==","caption":"a\r\nX: \"y\"","place":{"x":1.0},"labels":["a","b"],"no\r\nname\"":"z"}}`)
	want := []formPart{
		{"photo", "photo", "image/png", "\x89PNG"}, {"caption", "", "", "a\r\nX: \"y\""}, {"place", "", "application/json", `{"x":1.0}`},
		{"labels", "", "", "a"}, {"labels", "", "", "b"}, {"no%0D%0Aname%22", "", "", "z"},
	}
	if diff := cmp.Diff(want, partsOf(t, srv.last(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnswersBecomeResults(t *testing.T) {
	srv := newService(t)
	s := petstore(t, srv)
	answer := func(status int, kind, body string) {
		srv.answers(func(w http.ResponseWriter, _ *http.Request) {
			if kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			w.Header().Set("Location", "/pets/1")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	const odd = `{ "id":9007199254740993, "z":1.0,"e":"\u00e9" }`
	answer(200, "application/json; charset=utf-8", odd)
	if r := callOK(t, s, "getPet", `{"petId":"1"}`); r.Content[0].Text != odd || string(r.Structured) != odd || r.Meta.HTTP.Status != 200 || r.Meta.HTTP.Location != "/pets/1" {
		t.Errorf("JSON: %+v", r)
	}
	answer(200, "application/json", "\xef\xbb\xbf"+odd)
	if r := callOK(t, s, "getPet", `{"petId":"1"}`); string(r.Structured) != odd {
		t.Errorf("JSON after a byte order mark: %+v", r)
	}
	answer(200, "application/json", `[1.0, 2]`)
	if r := callOK(t, s, "listPets", `{}`); r.Content[0].Text != `[1.0, 2]` || string(r.Structured) != `{"result":[1.0, 2]}` {
		t.Errorf("a list: %+v", r)
	}
	answer(200, "application/json", `{"broken":`)
	if r := callOK(t, s, "getPet", `{"petId":"1"}`); r.Content[0].Text != `{"broken":` || r.Structured != nil {
		t.Errorf("broken JSON: %+v", r)
	}
	answer(200, "application/json", strings.Repeat(`[`, 5000)+strings.Repeat(`]`, 5000))
	if r := callOK(t, s, "listPets", `{}`); r.Structured != nil || len(r.Content[0].Text) != 10000 {
		t.Errorf("deep JSON: %d, %s", len(r.Content[0].Text), r.Structured)
	}
	answer(204, "", "")
	if r := callOK(t, s, "delete_pet", `{"petId":"1"}`); r.Content[0].Text != "HTTP 204 No Content" {
		t.Errorf("nothing: %+v", r)
	}
	answer(404, "application/problem+json", `{"detail":"no such pet"}`)
	if r := call(t, s, "getPet", `{"petId":"1"}`); !r.IsError || r.Content[0].Text != "HTTP 404 Not Found" || r.Content[1].Text != `{"detail":"no such pet"}` || string(r.Structured) != `{"detail":"no such pet"}` {
		t.Errorf("404: %+v", r)
	}
	answer(503, "text/html", `<b>`)
	if r := call(t, s, "getPet", `{"petId":"1"}`); !r.IsError || r.Content[1].Text != "<b>" {
		t.Errorf("503: %+v", r)
	}
	answer(302, "", ``)
	if r := call(t, s, "addPet", `{"body":{}}`); !r.IsError || r.Meta.HTTP.Status != 302 || r.Meta.HTTP.Location != "/pets/1" || srv.count() == 0 {
		t.Errorf("a redirect of a POST: %+v", r)
	}
	answer(200, "image/png", "\x89PNG")
	if r := callOK(t, s, "getPhoto", `{"petId":"1"}`); r.Content[0].Type != "image" || r.Content[0].Data != "iVBORw==" || r.Content[0].MimeType != "image/png" {
		t.Errorf("an image: %+v", r)
	}
	answer(200, "audio/wav", "RIFF")
	if r := callOK(t, s, "getPhoto", `{"petId":"1"}`); r.Content[0].Type != "audio" || r.Content[0].Data != "UklGRg==" {
		t.Errorf("audio: %+v", r)
	}
	answer(200, "text/plain", "\xff\xfe")
	if r := callOK(t, s, "setNote", `{"body":""}`); r.Content[0].Resource.Blob != "//4=" || r.Content[0].Resource.MimeType != "text/plain" {
		t.Errorf("text that is none: %+v", r)
	}
	answer(200, "text/plain; charset=iso-8859-1", "caf\xe9")
	if r := callOK(t, s, "setNote", `{"body":""}`); r.Content[0].Text != "café" {
		t.Errorf("text in Latin-1: %+v", r)
	}
	answer(200, "application/json; charset=utf-16", "\xff\xfe{\x00\"\x00a\x00\"\x00:\x00\"\x00\xe9\x00\"\x00}\x00")
	if r := callOK(t, s, "getPet", `{"petId":"1"}`); r.Content[0].Text != `{"a":"é"}` || string(r.Structured) != `{"a":"é"}` {
		t.Errorf("JSON in UTF-16: %+v", r)
	}
	answer(200, "text/plain; charset=iso-8859-1", "café") // a wrong charset
	if r := callOK(t, s, "setNote", `{"body":""}`); r.Content[0].Text != "café" {
		t.Errorf("text in UTF-8 that is called Latin-1: %+v", r)
	}
	answer(200, "text/csv", "a;ä")
	if r := callOK(t, s, "setNote", `{"body":""}`); r.Content[0].Text != "a;ä" {
		t.Errorf("text: %+v", r)
	}
}

func TestCredentialsComeOnlyFromTheConfiguration(t *testing.T) {
	srv := newService(t)
	s := petstore(t, srv)
	// Arguments that the schema does not have change nothing, even where nobody has
	// checked them.
	callOK(t, s, "listPets", `{"X-Key":"mine","Authorization":"mine","authorization":"mine"}`)
	if got := srv.last(t); got.Header.Get("X-Key") != "k-secret" || got.Header.Get("Authorization") != "" {
		t.Errorf("headers %v", got.Header)
	}
	for _, arguments := range []string{`{"where":{"certificate":"mine"}}`, `{"where":{"limit":"5"}}`} {
		refused(t, s, srv, "listPets", arguments)
	}
	refused(t, s, srv, "order", `{"body":{"pet":"a","address":{"x":1},"notes":[null]}}`)

	bare := open(t, Config{ID: "pets", OpenAPI: config.OpenAPI{Document: "testdata/petstore.yaml", BaseURL: srv.URL}})
	o, err := bare.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(o.Notes, "\n"), `requires the credential "certificate", but none is configured`) || len(toolNames(o)) < 10 {
		t.Errorf("without credentials there are %v, notes %q", toolNames(o), o.Notes)
	}
	callOK(t, bare, "listPets", `{"X-Key":"mine"}`)
	if got := srv.last(t); got.Header.Get("X-Key") != "" {
		t.Errorf("headers %v", got.Header)
	}
	some := open(t, Config{ID: "pets", OpenAPI: config.OpenAPI{Document: "testdata/petstore.yaml", BaseURL: srv.URL, Credentials: map[string]config.Credential{"token": {Value: "t-secret"}}}})
	if o, err = some.Offer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(toolNames(o), " "); got != "order getPhoto" {
		t.Errorf("with one credential there are %v", got)
	}
	if !strings.Contains(strings.Join(o.Notes, "\n"), `GET /pets is skipped: it requires the credential "key"`) {
		t.Errorf("notes %q", o.Notes)
	}
	callOK(t, some, "order", `{}`)
	if got := srv.last(t); got.Header.Get("Authorization") != "Bearer t-secret" {
		t.Errorf("headers %v", got.Header)
	}
	headers := open(t, Config{ID: "pets", Headers: map[string]string{"x-key": "h-secret", "Authorization": "Bearer h"}, OpenAPI: config.OpenAPI{Document: "testdata/petstore.yaml", BaseURL: srv.URL}})
	callOK(t, headers, "order", `{}`)
	if got := srv.last(t); got.Header.Get("Authorization") != "Bearer h" || got.Header.Get("X-Key") != "h-secret" {
		t.Errorf("headers %v", got.Header)
	}
}

func FuzzRequestStaysOnItsHostAndPath(f *testing.F) {
	for _, seed := range []string{
		`{"petId":"..","body":{}}`, `{"petId":"a/../b","where":{"a":"b"}}`, `{"petId":["x"],"filter":{"a":{"b":1}}}`, `{"petId":"%2e%2e","raw":"&x=#"}`,
		`{"petId":"\r\n","session":"a; b","X-Trace":"a\r\nb"}`, `{"simple":{"a":".."},"label":["."],"matrix":[""],"list":[1]}`, `{"petId":1e400,"tags":[true,null]}`,
		`{"petId":"a","body":{"photo":"x","caption":"\u0000","pet":["a"]}}`, `{"petId":";/..;/x"}`, `{"petId":"@evil.invalid"}`, `{"petId":"\\..\\"}`,
	} {
		f.Add(seed)
	}
	s := New(Config{ID: "pets", OpenAPI: config.OpenAPI{Document: "testdata/petstore.yaml", BaseURL: "https://pets.invalid/v1", Credentials: secrets()}})
	if _, err := s.Offer(f.Context()); err != nil {
		f.Fatal(err)
	}
	r, err := s.offers.Last(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		for name, op := range r.Own.byName {
			req, err := op.request(t.Context(), json.RawMessage(arguments))
			if err != nil {
				if !strings.HasSuffix(err.Error(), ".") {
					t.Fatalf("%s is refused without a sentence: %v", name, err)
				}
				continue
			}
			u, err := url.Parse(req.URL.String())
			if err != nil || u.Scheme != "https" || u.Host != "pets.invalid" || u.User != nil || u.Fragment != "" || !strings.HasPrefix(u.EscapedPath(), "/v1/") {
				t.Fatalf("%s goes to %s", name, req.URL)
			}
			if n, want := strings.Count(u.EscapedPath(), "/"), 1+strings.Count(op.template, "/"); n != want {
				t.Fatalf("%s goes to %s, which has %d parts", name, u.EscapedPath(), n)
			}
			if dotted(u.EscapedPath()) {
				t.Fatalf("%s goes to %s", name, u.EscapedPath())
			}
			values, err := url.ParseQuery(u.RawQuery)
			if err != nil {
				t.Fatalf("%s has the query %q", name, u.RawQuery)
			}
			if name == "admin" && len(values["certificate"]) != 1 {
				t.Fatalf("%s has the credential %q", name, values["certificate"])
			}
			for header, list := range req.Header {
				for _, text := range list {
					if strings.ContainsAny(text, "\r\n\x00") {
						t.Fatalf("%s has %s: %q", name, header, text)
					}
				}
			}
			if key := req.Header.Values("X-Key"); name == "listPets" && (len(key) != 1 || key[0] != "k-secret") {
				t.Fatalf("%s has the key %q", name, key)
			}
		}
	})
}

func FuzzQueryParameterRoundTrips(f *testing.F) {
	f.Add("a", "b")
	f.Add("&=#?/ +%", "ü\x00\r\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if name == "" {
			return
		}
		p := &param{key: "k", name: name, in: "query"}
		_ = p.setStyle("", nil)
		fields, err := p.fields(value{kind: 's', text: text}, escapePart, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := url.ParseQuery(strings.Join(fields, "&"))
		if err != nil || len(got) != 1 || got.Get(name) != text {
			t.Fatalf("%q=%q came back as %v, %v", name, text, got, err)
		}
	})
}

func TestAQueryInAPathIsSentAndCannotBeReplaced(t *testing.T) {
	srv := newService(t)
	document := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"components":{"securitySchemes":{"k":{"type":"apiKey","in":"query","name":"key"}}},"security":[{"k":[]}],"paths":{
		"/m/{id}":           {"get":{"operationId":"plain","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],"responses":{"200":{"description":"ok"}}}},
		"/m/{id}?beta=true": {"get":{"operationId":"beta","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}},{"name":"n","in":"query","schema":{"type":"object"}}],"responses":{"200":{"description":"ok"}}}},
		"/twice?n=1":        {"get":{"operationId":"twice","parameters":[{"name":"n","in":"query","schema":{"type":"string"}}],"responses":{"200":{"description":"ok"}}}},
		"/own?key=mine":     {"get":{"operationId":"own","responses":{"200":{"description":"ok"}}}},
		"/a?b={c}":          {"get":{"operationId":"open","responses":{"200":{"description":"ok"}}}}}}`
	s := open(t, Config{ID: "x", OpenAPI: config.OpenAPI{Document: write(t, document), BaseURL: srv.URL, Credentials: map[string]config.Credential{"k": {Value: "secret"}}}})
	o, err := s.Offer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"plain", "beta"}, toolNames(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	callOK(t, s, "beta", `{"id":"a?b","n":{"x":1}}`)
	if got, want := srv.last(t).Target, "/m/a%3Fb?beta=true&x=1&key=secret"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	before := srv.count()
	if r := call(t, s, "beta", `{"id":"a","n":{"beta":"false"}}`); !r.IsError || srv.count() != before {
		t.Errorf("an argument replaced the query of the path: %+v", r)
	}
}
