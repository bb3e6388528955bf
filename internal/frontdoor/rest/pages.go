package rest

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// The page at /docs embeds all of Stoplight Elements, so that it works without a network. The
// license is next to it.
//
//go:embed docs/index.html docs/page.js docs/page.css docs/elements.js.gz docs/elements.css.gz docs/LICENSE.elements.txt docs/LICENSE.elements-parts.txt
var docs embed.FS

// docsPolicy restricts the page to resources of this origin. Elements sets inline styles, which a
// policy cannot list individually.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pagePolicy is for the small pages, which contain only text and style.
const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pageTemplate is the template of the small pages for people.
const pageTemplate = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>{{.Title}}</title>
    <style>
      :root { color-scheme: light dark; }
      body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }
      code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
      pre { padding: .8rem 1rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 6px; overflow-x: auto; }
      dt { font-weight: 600; margin-top: .8rem; } dd { margin: 0; }
    </style>
  </head>
  <body>
    <h1>{{.Title}}</h1>
    <p>{{.Text}}</p>
    {{- with .Example}}
    <pre>{{.}}</pre>
    {{- end}}
    <dl>
      {{- range .Rows}}
      <dt>{{if .Link}}<a href="{{.Link}}">{{.Name}}</a>{{else}}{{.Name}}{{end}}</dt><dd>{{.Text}}</dd>
      {{- end}}
    </dl>
  </body>
</html>
`

type page struct {
	Title, Text, Example string
	Rows                 []pageRow
}

type pageRow struct{ Name, Link, Text string }

// pages serves the pages for people rather than programs.
type pages struct {
	version  string
	template *template.Template
	index    []byte
}

func registerPages(mux *http.ServeMux, version string, doc *httpapi.Document) {
	index, err := docs.ReadFile("docs/index.html")
	if err != nil {
		panic("rest: the docs page is not embedded: " + err.Error()) // the build guarantees it
	}
	p := &pages{version: version, template: template.Must(template.New("page").Parse(pageTemplate)), index: index}
	page := func(pattern string, h httpapi.Handler) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) { httpapi.Serve(w.(*httpapi.Exchange), r, h) })
	}
	page("/{$}", p.root)
	page("/problems/{kind}", p.problem)
	page("/docs", p.docs)
	page("/docs/{file}", p.asset)
	document := func(pattern, media string, encoded func() ([]byte, error)) {
		page(pattern, func(x *httpapi.Exchange, _ *http.Request) error {
			text, err := encoded()
			if err == nil {
				x.Send(http.StatusOK, []string{media}, text)
			}
			return err
		})
	}
	document("/openapi.json", "application/openapi+json", doc.JSON)
	document("/openapi.yaml", "application/openapi+yaml", doc.YAML)
}

func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

func (p *pages) send(x *httpapi.Exchange, content page) error {
	var b bytes.Buffer
	if err := p.template.Execute(&b, content); err != nil {
		return fmt.Errorf("making a page: %w", err)
	}
	x.Header().Set("Content-Security-Policy", pagePolicy)
	x.Send(http.StatusOK, []string{"text/html; charset=utf-8"}, b.Bytes())
	return nil
}

// root serves an index of the API.
func (p *pages) root(x *httpapi.Exchange, r *http.Request) error {
	rows := []pageRow{
		{"/docs", "docs", "The API reference, with a request editor"},
		{"/openapi.json", "openapi.json", "The API as an OpenAPI 3.1 document; also /openapi.yaml"},
		{"/servers", "servers", "The MCP servers"},
		{"/tools", "tools", "All tools"},
		{"/workers", "workers", "The workers"},
		{"/health", "health", "Health summary"},
	}
	x.Set("Vary", "Accept")
	if wantsHTML(r) {
		return p.send(x, page{
			Title: "Callyard", Text: "This is a front door of Callyard, version " + p.version + ". It runs the tools of MCP servers.",
			Example: "curl --json '{\"message\":\"hello\"}' \\\n  http://" + r.Host + `/servers/everything/tools/echo`, Rows: rows,
		})
	}
	links := make(map[string]string, len(rows))
	for _, row := range rows {
		links[row.Link] = row.Name
	}
	x.SendJSON(http.StatusOK, httpapi.Encode(map[string]any{"name": "Callyard", "version": p.version, "links": links}))
	return nil
}

// problem explains a kind of problem. The type of a problem document links to it.
func (p *pages) problem(x *httpapi.Exchange, r *http.Request) error {
	kinds := problem.Rows()
	at := slices.IndexFunc(kinds, func(k problem.Row) bool { return string(k.Kind) == r.PathValue("kind") })
	if at < 0 {
		names := make([]string, len(kinds))
		for i := range kinds {
			names[i] = string(kinds[i].Kind)
		}
		slices.Sort(names)
		return schema.Errorf(schema.KindNotFound, "This kind of problem does not exist. The kinds are %s.", strings.Join(names, ", "))
	}
	k := &kinds[at]
	x.Set("Vary", "Accept")
	if wantsHTML(r) {
		return p.send(x, page{
			Title: k.Title, Text: k.Meaning,
			Rows: []pageRow{{"What to do", "", k.Fix}, {"Status", "", fmt.Sprintf("%d", k.Status)}, {"Type", "", "/problems/" + string(k.Kind)}},
		})
	}
	x.SendJSON(http.StatusOK, httpapi.Encode(map[string]any{
		"type": "/problems/" + string(k.Kind), "title": k.Title, "status": k.Status, "meaning": k.Meaning, "fix": k.Fix,
	}))
	return nil
}

func (p *pages) docs(x *httpapi.Exchange, _ *http.Request) error {
	x.Header().Set("Content-Security-Policy", docsPolicy)
	x.Send(http.StatusOK, []string{"text/html; charset=utf-8"}, p.index)
	return nil
}

// asset serves a file of the docs page. Browsers that support it get the compressed file, as it
// is embedded.
func (p *pages) asset(x *httpapi.Exchange, r *http.Request) error {
	var mediaType string
	name := r.PathValue("file")
	switch name {
	case "page.js", "page.css":
		body, err := docs.ReadFile("docs/" + name)
		if err != nil {
			return fmt.Errorf("reading the docs page: %w", err)
		}
		mediaType = "text/javascript; charset=utf-8"
		if name == "page.css" {
			mediaType = "text/css; charset=utf-8"
		}
		x.Header().Set("Cache-Control", "public, max-age=3600")
		x.Send(http.StatusOK, []string{mediaType}, body)
		return nil
	case "elements.js":
		mediaType = "text/javascript; charset=utf-8"
	case "elements.css":
		mediaType = "text/css; charset=utf-8"
	case "LICENSE.elements.txt", "LICENSE.elements-parts.txt":
		body, err := docs.ReadFile("docs/" + name)
		if err != nil {
			return fmt.Errorf("reading a licence: %w", err)
		}
		x.Send(http.StatusOK, []string{"text/plain; charset=utf-8"}, body)
		return nil
	default:
		return schema.Errorf(schema.KindNotFound, "The file does not exist.")
	}
	body, err := docs.ReadFile("docs/" + name + ".gz")
	if err != nil {
		return fmt.Errorf("reading the docs page: %w", err)
	}
	h := x.Header()
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
	} else if body, err = unpack(body); err != nil {
		return err
	}
	x.Send(http.StatusOK, []string{mediaType}, body)
	return nil
}

func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking the docs page: %w", err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpacking the docs page: %w", err)
	}
	return body, nil
}
