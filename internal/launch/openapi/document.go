package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/callyard/callyard/internal/kit/jsonpointer"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/launch/adapt"
)

// document is a parsed OpenAPI document.
type document struct {
	model *openapi3.T
	// root is the same document as plain JSON values, for resolving references.
	root  any
	old   bool   // version 3.0, whose schemas differ from JSON Schema
	doubt string // a fault that does not prevent its use

	parts map[partKey]*part // filled while tools are created, by one goroutine
}

var errElsewhere = errors.New("it refers to another document, and other documents are not fetched; bundle them into one.")

// parse parses a document in JSON or YAML.
func parse(ctx context.Context, text []byte) (_ *document, err error) {
	defer func() {
		// Documents are untrusted, and the parser is not ours.
		if r := recover(); r != nil {
			err = errors.New("it cannot be parsed; check it with a linter.")
		}
	}()
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := &document{}
	model, err := newLoader(ctx).LoadFromData(text)
	switch {
	case err != nil && strings.Contains(err.Error(), "disallowed external reference"):
		return nil, errElsewhere
	case err != nil:
		d.doubt = brief(unreadable(text, err))
		rest, root, ok := withoutSchemas(ctx, text)
		switch {
		case !ok && hasExternalReference(root):
			// The loader may find a reference in place of a text first, such as in a description.
			return nil, errElsewhere
		case !ok:
			return nil, fmt.Errorf("%s; check it with a linter.", d.doubt)
		}
		model, d.root = rest, root
	}
	d.model = model
	switch v := model.OpenAPI; {
	case strings.HasPrefix(v, "3.0"):
		d.old = true
	case strings.HasPrefix(v, "3."):
	case v == "":
		return nil, errors.New("it has no \"openapi\" version, so it is not an OpenAPI 3 document; convert it to 3.0 or 3.1.")
	default:
		return nil, errors.New("its \"openapi\" version is not 3.0 or 3.1; convert it.")
	}
	if model.Paths == nil || model.Paths.Len() == 0 {
		return nil, errors.New("it has no paths, so it has no operations for tools.")
	}
	if d.doubt != "" {
		return d, nil
	}
	if d.root, err = plainJSON(text); err != nil {
		again, err := json.Marshal(model)
		if err != nil {
			return nil, fmt.Errorf("%s; check it with a linter.", brief(err))
		}
		if d.root, err = plainJSON(again); err != nil {
			return nil, fmt.Errorf("%s; check it with a linter.", brief(err))
		}
	}
	if c := model.Components; c != nil && len(c.Schemas) > maxJudged {
		return d, nil
	}
	if err := model.Validate(ctx, openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation(),
		openapi3.DisableSchemaPatternValidation(), openapi3.AllowExtensionsWithRef()); err != nil {
		d.doubt = brief(err)
	}
	return d, nil
}

// newLoader returns a loader that opens no other document.
func newLoader(ctx context.Context) *openapi3.Loader {
	loader := openapi3.NewLoader()
	loader.Context = ctx
	loader.IsExternalRefsAllowed = false
	loader.ReadFromURIFunc = nil
	return loader
}

// unreadable returns the part of the loader's error for the format of text, because the loader
// tries JSON and YAML and returns the errors of both.
func unreadable(text []byte, err error) error {
	asJSON, asYAML, both := strings.Cut(err.Error(), ", yaml error: ")
	if !both {
		return err
	}
	fault := asYAML
	if start := bytes.TrimSpace(text); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		fault = strings.TrimPrefix(asJSON, "failed to unmarshal data: json error: ")
	}
	for _, said := range []string{"error unmarshaling JSON: ", "error converting YAML to JSON: ", "while decoding JSON: ", "json: ", "yaml: "} {
		fault = strings.TrimPrefix(fault, said)
	}
	// The YAML parser lists its errors below a headline.
	return errors.New(strings.TrimPrefix(fault, "unmarshal errors:\n"))
}

// brief returns the first line of an error, shortened.
func brief(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return truncate.Text(strings.TrimRight(strings.TrimSpace(line), ".:"), 300)
}

func plainJSON(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var root any
	if err := dec.Decode(&root); err != nil {
		return nil, err
	}
	return root, nil
}

// lookup resolves a reference into the document.
func (d *document) lookup(ref string) (any, bool) {
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	at := d.root
	for part := range strings.SplitSeq(rest, "/") {
		if name, err := url.PathUnescape(part); err == nil {
			part = name
		}
		part = jsonpointer.Name(part)
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[part]; !ok {
				return nil, false
			}
		case []any:
			i := 0
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// at returns the value below v at the keys and follows references. Members next to a reference take
// precedence over its target.
func (d *document) at(v any, keys ...string) any {
	for i := 0; ; i++ {
		for range 20 {
			m, ok := v.(map[string]any)
			ref, isRef := m["$ref"].(string)
			if !ok || !isRef || i < len(keys) && m[keys[i]] != nil {
				break
			}
			if v, ok = d.lookup(ref); !ok {
				return nil
			}
		}
		if i == len(keys) {
			return v
		}
		m, _ := v.(map[string]any)
		v = m[keys[i]]
		if i == len(keys)-1 {
			return v
		}
	}
}

// serviceURL returns the address of the service according to a fetched document. The operator must
// configure any other origin than that of the document.
func serviceURL(d *document, fetchedFrom string) (*url.URL, error) {
	from, err := url.Parse(fetchedFrom)
	if err != nil {
		return nil, errors.New("its address cannot be read; correct it.")
	}
	base := &url.URL{Scheme: from.Scheme, Host: from.Host}
	if len(d.model.Servers) == 0 {
		return base, nil
	}
	to, ok := serverAddress(d.model.Servers[0], from)
	if !ok {
		return nil, errors.New("its first server is invalid; add \"base_url\".")
	}
	if adapt.OriginOf(to) != adapt.OriginOf(from) {
		return nil, fmt.Errorf("its first server is %s, which differs from the origin of the document; add \"base_url\" if this is correct.", adapt.OriginOf(to))
	}
	return to, nil
}

// serverAddress returns the address of a server, with the defaults of its variables.
func serverAddress(s *openapi3.Server, relativeTo *url.URL) (*url.URL, bool) {
	if s == nil {
		return nil, false
	}
	text := s.URL
	for name, v := range s.Variables {
		if v != nil {
			text = strings.ReplaceAll(text, "{"+name+"}", v.Default)
		}
	}
	u, err := relativeTo.Parse(text)
	if err != nil || strings.ContainsAny(text, "{}") || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, false
	}
	u.RawQuery, u.Fragment = "", ""
	if u, err = url.Parse(strings.TrimRight(u.String(), "/")); err != nil {
		return nil, false
	}
	return u, true
}
