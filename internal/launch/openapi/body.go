package openapi

import (
	"encoding/base64"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/callyard/callyard/internal/launch/adapt"
)

// form is the encoding of a request body.
type form int

const (
	formJSON form = iota
	formURL
	formMultipart
	formText
	formBytes
)

// body is the request body of an operation.
type body struct {
	key      string // its name in the arguments
	about    string
	required bool
	form     form
	kind     string // media type
	schema   any    // as in the document
	encoding openapi3.Encodings
	binary   map[string]bool // binary fields of a multipart body
}

// requestBody chooses the best supported media type of the body.
func (b *builder) requestBody(c candidate) string {
	ref := c.at.RequestBody
	if ref == nil || ref.Value == nil || len(ref.Value.Content) == 0 {
		return ""
	}
	kind, key, media := pickMedia(ref.Value.Content)
	if media == nil {
		return "its body has an unsupported type"
	}
	out := &body{key: "body", about: ref.Value.Description, required: ref.Value.Required, kind: kind, encoding: media.Encoding}
	out.schema = b.doc.at(c.raw, "requestBody", "content", key, "schema")
	switch {
	case kind == "*/*" || kind == "application/*":
		out.kind = "application/json"
	case isJSON(kind):
	case kind == "application/x-www-form-urlencoded":
		out.form = formURL
	case kind == "multipart/form-data":
		out.form = formMultipart
		out.schema = out.withFiles(b.doc)
		out.findBinary(b.doc)
	case strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "yaml"):
		out.form = formText
	default:
		out.form = formBytes
	}
	for taken := true; taken; {
		taken = slices.ContainsFunc(c.params, func(p *param) bool { return p.key == out.key })
		if taken {
			out.key = "request_" + out.key
		}
	}
	c.body = out
	return ""
}

// pickMedia chooses a media type of the body.
func pickMedia(content openapi3.Content) (kind, key string, media *openapi3.MediaType) {
	order := func(kind string) int {
		switch {
		case kind == "application/json":
			return 0
		case isJSON(kind):
			return 1
		case kind == "application/x-www-form-urlencoded":
			return 2
		case kind == "multipart/form-data":
			return 3
		case kind == "*/*" || kind == "application/*":
			return 4
		case strings.HasPrefix(kind, "text/") && !strings.Contains(kind, "*"):
			return 5
		case strings.HasSuffix(kind, "xml") || strings.HasSuffix(kind, "yaml"):
			return 6
		case strings.HasPrefix(kind, "multipart/"), kind == "":
			return 99
		case strings.Contains(kind, "*"):
			return 99
		}
		return 7
	}
	rank := 99
	for _, k := range slices.Sorted(maps.Keys(content)) {
		if n := order(cleanMedia(k)); content[k] != nil && n < rank {
			kind, key, media, rank = cleanMedia(k), k, content[k], n
		}
	}
	return kind, key, media
}

// cleanMedia returns a media type without parameters, or "" if it is invalid.
func cleanMedia(kind string) string {
	plain, _, err := mime.ParseMediaType(kind)
	if err != nil || !strings.Contains(plain, "/") {
		return ""
	}
	return plain
}

func isJSON(kind string) bool { return adapt.IsJSON(kind) }

// describe returns the schema of the argument.
func (b *body) describe(s *schemas) any {
	switch b.form {
	case formText:
		return map[string]any{"type": "string", "contentMediaType": b.kind}
	case formBytes:
		return map[string]any{"type": "string", "contentEncoding": "base64", "contentMediaType": b.kind}
	case formURL, formMultipart:
		s.form = b.form == formMultipart
		defer func() { s.form = false }()
		if m, ok := s.of(b.schema).(map[string]any); ok {
			if m["type"] == nil {
				m["type"] = "object"
			}
			return m
		}
		return map[string]any{"type": "object"}
	}
	return s.of(b.schema)
}

// write returns the encoded body and its media type.
func (b *body) write(v value) ([]byte, string, error) {
	p := &param{key: b.key}
	switch b.form {
	case formJSON:
		return v.raw, b.kind, nil
	case formText, formBytes:
		if v.kind != 's' {
			return nil, "", p.refused("must be a string.")
		}
		if b.form == formText {
			return []byte(v.text), b.kind + "; charset=utf-8", nil
		}
		data, err := decodeBytes(v.text)
		if err != nil {
			return nil, "", p.refused("is not base64; encode the bytes in base64.")
		}
		return data, b.kind, nil
	}
	if v.kind != 'o' {
		return nil, "", p.refused("must be an object.")
	}
	if b.form == formURL {
		return b.writeURL(v)
	}
	return b.writeMultipart(v)
}

func decodeBytes(text string) ([]byte, error) {
	if data, err := base64.StdEncoding.DecodeString(text); err == nil {
		return data, nil
	}
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}

// writeURL encodes a form like a query. An object field without a style becomes JSON.
func (b *body) writeURL(v value) ([]byte, string, error) {
	var out []string
	declared := make(map[string]bool, len(v.members))
	for _, m := range v.members {
		declared[m.name] = true
	}
	for _, m := range v.members {
		if m.value.kind == '0' {
			continue
		}
		p := &param{key: b.key + "." + m.name, name: m.name, in: "query"}
		enc := b.encoding[m.name]
		var why string
		if enc != nil {
			why = p.setStyle(enc.Style, enc.Explode)
			p.json = isJSON(cleanMedia(enc.ContentType)) && enc.Style == ""
		} else {
			why = p.setStyle("", nil)
		}
		if why != "" {
			return nil, "", p.refused("has a style that forms do not support; it cannot be sent.")
		}
		if (enc == nil || enc.Style == "") && (m.value.kind == 'o' || m.value.kind == 'a' && slices.ContainsFunc(m.value.items, func(v value) bool { return v.kind == 'o' || v.kind == 'a' })) {
			p.json = true
		}
		fields, err := p.fields(m.value, escapePart, func(name string) bool { return !declared[name] })
		if err != nil {
			return nil, "", err
		}
		out = append(out, fields...)
	}
	return []byte(strings.Join(out, "&")), b.kind, nil
}
