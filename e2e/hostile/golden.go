package hostile

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Golden is a valid request of one operation.
type Golden struct {
	// Operation is its name in findings, such as "POST /calls".
	Operation string
	Method    string
	// Path is the escaped path with its query.
	Path string
	// Header has lines "Name: value", without Host and Content-Length.
	Header []string
	Body   []byte
}

// Known holds values that exist at the target. It maps an operation
// ("GET /calls/{id}") or a path ("/calls/{id}") to the values of its path parameters, and
// "body" to a body that replaces the document's example.
type Known map[string]map[string]string

// of returns a value for an operation. Values of the operation take precedence over those of
// its path.
func (k Known) of(method, path, name string) (string, bool) {
	if v, ok := k[method+" "+path][name]; ok {
		return v, true
	}
	v, ok := k[path][name]
	return v, ok
}

// document is the part of an OpenAPI document that is used.
type document struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name    string          `json:"name"`
			In      string          `json:"in"`
			Example json.RawMessage `json:"example"`
		} `json:"parameters"`
		RequestBody struct {
			Content map[string]struct {
				Example json.RawMessage `json:"example"`
			} `json:"content"`
		} `json:"requestBody"`
	} `json:"paths"`
}

// Goldens returns a valid request for each operation of an OpenAPI document and each
// media type that it accepts, in order. It returns an error if the path parameters or the body
// of an operation are neither in the document nor known, because it would not be attacked.
func Goldens(openapi []byte, known Known) ([]Golden, error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	var all []Golden
	for path, operations := range d.Paths {
		for verb, op := range operations {
			method := strings.ToUpper(verb)
			g := Golden{Operation: method + " " + path, Method: method, Path: path}
			query := url.Values{}
			for _, p := range op.Parameters {
				value, ok := known.of(method, path, p.Name)
				if !ok && p.Example != nil {
					value, ok = plainText(p.Example), true
				}
				switch {
				case p.In == "path" && !ok:
					return nil, fmt.Errorf("%s: nobody knows a value of %s", g.Operation, p.Name)
				case p.In == "path":
					g.Path = strings.ReplaceAll(g.Path, "{"+p.Name+"}", url.PathEscape(value))
				case p.In == "query" && ok:
					query.Set(p.Name, value)
				case p.In == "header" && ok && !slices.Contains([]string{"Prefer", "Idempotency-Key", "Callyard-Callback-Url"}, p.Name):
					// These three headers would make every call stored or refused; the
					// mutations send them often enough.
					g.Header = append(g.Header, p.Name+": "+value)
				}
			}
			if len(query) > 0 {
				g.Path += "?" + query.Encode()
			}
			if len(op.RequestBody.Content) == 0 {
				all = append(all, g)
				continue
			}
			for media, content := range op.RequestBody.Content {
				one := g
				one.Header = append(slices.Clone(g.Header), "Content-Type: "+media)
				body, ok := known.of(method, path, "body")
				if !ok || media != "application/json" {
					if content.Example == nil {
						return nil, fmt.Errorf("%s: nobody knows a body of type %s", g.Operation, media)
					}
					if body = string(content.Example); media != "application/json" {
						body = plainText(content.Example)
						one.Operation += " (" + media + ")"
					}
				}
				one.Body = []byte(body)
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b Golden) int { return strings.Compare(a.Operation, b.Operation) })
	return all, nil
}

// plainText converts a JSON value to the text of a parameter.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// bytes encodes the request for a host.
func (g Golden) bytes(host string) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", g.Method, g.Path, host)
	for _, line := range g.Header {
		b = append(append(b, line...), "\r\n"...)
	}
	if len(g.Body) > 0 {
		b = fmt.Appendf(b, "Content-Length: %d\r\n", len(g.Body))
	}
	return append(append(b, "\r\n"...), g.Body...)
}
