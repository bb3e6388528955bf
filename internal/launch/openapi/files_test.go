package openapi

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/config"
)

// formPart is a part of a multipart body as a service got it.
type formPart struct{ Name, File, Kind, Body string }

func partsOf(t *testing.T, got seen) (parts []formPart) {
	t.Helper()
	_, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	for r := multipart.NewReader(strings.NewReader(got.Body), params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(p)
		parts = append(parts, formPart{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), string(body)})
	}
}

// fastAPI is a document as FastAPI 0.129.1 and newer write it: a file is a string with a media type,
// and an optional file has an alternative.
const fastAPI = `{"openapi":"3.1.0","info":{"title":"uploads","version":"1"},"paths":{
  "/files":{"post":{"operationId":"upload","requestBody":{"required":true,"content":{"multipart/form-data":{"schema":{"$ref":"#/components/schemas/Body_upload"}}}},"responses":{"200":{"description":"ok"}}}},
  "/notes":{"post":{"operationId":"note","requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Note"}}}},"responses":{"200":{"description":"ok"}}}}
},"components":{"schemas":{
  "Body_upload":{"type":"object","required":["file"],"properties":{
    "file":{"type":"string","contentMediaType":"application/octet-stream","title":"File"},
    "cover":{"anyOf":[{"type":"string","contentMediaType":"application/octet-stream"},{"type":"null"}]},
    "old":{"anyOf":[{"type":"string","format":"binary"},{"type":"null"}]},
    "more":{"anyOf":[{"type":"array","items":{"type":"string","contentMediaType":"application/octet-stream"}},{"type":"null"}]},
    "title":{"anyOf":[{"type":"string"},{"type":"null"}]},
    "page":{"type":"string","contentMediaType":"text/html"},
    "note":{"$ref":"#/components/schemas/Note"}}},
  "Note":{"type":"object","properties":{"data":{"type":"string","contentMediaType":"application/octet-stream"},"next":{"anyOf":[{"$ref":"#/components/schemas/Note"},{"type":"null"}]}}}
}}}`

func TestFilesOfAMultipartBodyAreSentAsBytes(t *testing.T) {
	srv := newService(t)
	s := open(t, Config{ID: "uploads", OpenAPI: config.OpenAPI{Document: write(t, fastAPI), BaseURL: srv.URL}})
	callOK(t, s, "upload", `{"body":{"file":"AP8=","cover":"iVBORw==","old":"AQI=","more":["AA==","AQ=="],"title":"a","page":"<p>","note":{"data":"AA=="}}}`)
	want := []formPart{
		{"file", "file", "application/octet-stream", "\x00\xff"}, {"cover", "cover", "application/octet-stream", "\x89PNG"}, {"old", "old", "application/octet-stream", "\x01\x02"},
		{"more", "more", "application/octet-stream", "\x00"}, {"more", "more", "application/octet-stream", "\x01"},
		{"title", "", "", "a"}, {"page", "", "", "<p>"}, {"note", "", "application/json", `{"data":"AA=="}`},
	}
	if diff := cmp.Diff(want, partsOf(t, srv.last(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	callOK(t, s, "upload", `{"body":{"file":"","cover":null}}`)
	if diff := cmp.Diff([]formPart{{"file", "file", "application/octet-stream", ""}}, partsOf(t, srv.last(t))); diff != "" {
		t.Errorf("null (-want +got):\n%s", diff)
	}
	refused(t, s, srv, "upload", `{"body":{"file":"not base64!"}}`)
}

// encodings is a document that declares the media types of the fields of a form.
const encodings = `{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{
  "/files":{"post":{"operationId":"upload","requestBody":{"required":true,"content":{"multipart/form-data":{
    "schema":{"$ref":"#/components/schemas/Form"},
    "encoding":{"profile":{"contentType":"image/png, image/jpeg"},"cover":{"contentType":"image/*"},"table":{"contentType":"text/csv"},"patch":{"contentType":"application/merge-patch+json"},"any":{"contentType":"application/json"}}}}},
    "responses":{"200":{"description":"ok"}}}}
},"components":{"schemas":{"Form":{"type":"object","properties":{
    "profile":{"description":"the picture"},"cover":{"type":"string","format":"binary"},"table":{"type":"string"},"patch":{"type":"object"},"any":{},
    "open":{},"count":{"type":"integer"},"ratio":{"type":"number"},"yes":{"type":"boolean"},"sizes":{"type":"array","items":{"type":"integer"}},"places":{"type":"array","items":{"type":"object"}},"pairs":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}}}}}`

// The defaults are those of the Encoding Object: text for texts, numbers and booleans, JSON for objects,
// and one part for each item of an array. A part without a Content-Type is text/plain (RFC 7578).
func TestTheFieldsOfAFormHaveTheMediaTypesOfTheDocument(t *testing.T) {
	srv := newService(t)
	s := open(t, Config{ID: "uploads", OpenAPI: config.OpenAPI{Document: write(t, encodings), BaseURL: srv.URL}})
	callOK(t, s, "upload", `{"body":{"profile":"/9j/","cover":"R0lGODlh","table":"a,b","patch":{"a":1},"any":"x","open":"y","count":9007199254740993,"ratio":1.0,"yes":true,"sizes":[1,2],"places":[{"x":1}],"pairs":[[1,2]]}}`)
	want := []formPart{
		{"profile", "profile", "image/jpeg", "\xff\xd8\xff"}, {"cover", "cover", "image/gif", "GIF89a"}, {"table", "", "text/csv", "a,b"}, {"patch", "", "application/merge-patch+json", `{"a":1}`}, {"any", "", "application/json", `"x"`},
		{"open", "", "", "y"}, {"count", "", "", "9007199254740993"}, {"ratio", "", "", "1.0"}, {"yes", "", "", "true"},
		{"sizes", "", "", "1"}, {"sizes", "", "", "2"}, {"places", "", "application/json", `{"x":1}`}, {"pairs", "", "application/json", "[1,2]"},
	}
	if diff := cmp.Diff(want, partsOf(t, srv.last(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	callOK(t, s, "upload", `{"body":{"profile":"AP8=","cover":"AP8="}}`)
	want = []formPart{{"profile", "profile", "image/png", "\x00\xff"}, {"cover", "cover", "application/octet-stream", "\x00\xff"}}
	if diff := cmp.Diff(want, partsOf(t, srv.last(t))); diff != "" {
		t.Errorf("bytes of no known type (-want +got):\n%s", diff)
	}
	if tool := string(current(t, s).byName["upload"].tool); !strings.Contains(tool, `"profile":{"contentEncoding":"base64","description":"the picture"`) {
		t.Errorf("the argument is not described as base64: %s", tool)
	}
}

func TestOnlyInAFormIsAStringWithAMediaTypeBase64(t *testing.T) {
	srv := newService(t)
	s := open(t, Config{ID: "uploads", OpenAPI: config.OpenAPI{Document: write(t, fastAPI), BaseURL: srv.URL}})
	definitions := func(tool string) map[string]any {
		t.Helper()
		var d struct {
			Input struct {
				Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
			} `json:"inputSchema"`
		}
		if err := json.Unmarshal(current(t, s).byName[tool].tool, &d); err != nil {
			t.Fatal(err)
		}
		out := make(map[string]any)
		for name, def := range d.Input.Defs {
			for key, value := range def.Properties {
				out[name+"."+key] = value
			}
		}
		return out
	}
	form := definitions("upload")
	if diff := cmp.Diff(map[string]any{"type": "string", "contentEncoding": "base64", "title": "File"}, form["Body_upload.file"]); diff != "" {
		t.Errorf("in a form (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"type": "string", "contentMediaType": "text/html"}, form["Body_upload.page"]); diff != "" {
		t.Errorf("text in a form (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"type": "string", "contentMediaType": "application/octet-stream"}, definitions("note")["Note.data"]); diff != "" {
		t.Errorf("in JSON (-want +got):\n%s", diff)
	}
}
