package openapi

import (
	"bytes"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// withFiles returns the schema of a multipart body, with the media type of the encoding in each field
// whose schema has no type. As the specification says, such a field is bytes: "profileImage: {}" with
// the content type image/png is a file.
func (b *body) withFiles(doc *document) any {
	s := newSchemas(doc, true)
	m := s.resolve(b.schema)
	fields, _ := m["properties"].(map[string]any)
	var all map[string]any
	for name, enc := range b.encoding {
		field, declared := fields[name]
		if enc == nil || !declared {
			continue
		}
		kind, _, _ := strings.Cut(enc.ContentType, ",")
		if kind = cleanMedia(kind); kind == "" || strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "xml") || isJSON(kind) {
			continue
		}
		of := s.resolve(field)
		if field != true && (of == nil || slices.ContainsFunc([]string{"type", "contentMediaType", "properties", "items", "enum", "const", "allOf", "anyOf", "oneOf"}, func(key string) bool { return of[key] != nil })) {
			continue
		}
		if all == nil {
			all = maps.Clone(fields)
		}
		file := map[string]any{"contentMediaType": kind}
		maps.Copy(file, of)
		all[name] = file
	}
	if all == nil {
		return b.schema
	}
	m = maps.Clone(m)
	m["properties"] = all
	return m
}

// findBinary records the binary fields.
func (b *body) findBinary(doc *document) {
	s := newSchemas(doc, true)
	s.form = true
	b.binary = make(map[string]bool)
	s.addBinary(b.schema, b.binary)
}

// addBinary adds the names of the binary fields of an object to binary.
func (s *schemas) addBinary(v any, binary map[string]bool) {
	m := s.resolve(v)
	if s.budget--; s.budget < 0 { // a schema may refer to itself
		return
	}
	fields, _ := m["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if s.holdsBytes(fields[name]) {
			binary[name] = true
		}
	}
	for _, part := range alternatives(m) {
		s.addBinary(part, binary)
	}
}

// holdsBytes reports whether a field is a file or a list of files.
func (s *schemas) holdsBytes(v any) bool {
	m := s.resolve(v)
	if s.budget--; m == nil || s.budget < 0 {
		return false
	}
	if s.isBinary(m) || m["contentEncoding"] == "base64" || hasType(m, "array") && s.holdsBytes(m["items"]) {
		return true
	}
	return slices.ContainsFunc(alternatives(m), s.holdsBytes)
}

// alternatives returns the schemas in allOf, anyOf and oneOf. An optional file is often described by
// an anyOf of the file and null.
func alternatives(m map[string]any) []any {
	var all []any
	for _, key := range [...]string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[key].([]any)
		all = append(all, list...)
	}
	return all
}

func (b *body) writeMultipart(v value) ([]byte, string, error) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, m := range v.members {
		items := []value{m.value}
		if m.value.kind == 'a' {
			items = m.value.items
		}
		for _, item := range items {
			if item.kind == '0' {
				continue
			}
			if err := b.part(w, m.name, item); err != nil {
				return nil, "", err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("writing the body: %w", err)
	}
	return buf.Bytes(), w.FormDataContentType(), nil
}

// part writes one field of a multipart body. Without a declared media type, an object or an array in an
// array is JSON, a file is application/octet-stream, and other values are text, which needs no header.
func (b *body) part(w *multipart.Writer, name string, v value) error {
	p := &param{key: b.key + "." + name}
	var kinds []string
	if enc := b.encoding[name]; enc != nil {
		for kind := range strings.SplitSeq(enc.ContentType, ",") {
			if kind = cleanMedia(kind); kind != "" {
				kinds = append(kinds, kind)
			}
		}
	}
	head := make(textproto.MIMEHeader)
	var data []byte
	kind := firstPlain(kinds)
	switch {
	case b.binary[name]:
		if v.kind != 's' {
			return p.refused("must be a string with bytes in base64.")
		}
		var err error
		if data, err = decodeBytes(v.text); err != nil {
			return p.refused("is not base64; encode the bytes in base64.")
		}
		head.Set("Content-Disposition", multipart.FileContentDisposition(name, legalName(name)))
		if kind = fileKind(kinds, data); kind == "" {
			kind = "application/octet-stream"
		}
	default:
		data = []byte(v.text)
		if v.kind == 'o' || v.kind == 'a' || isJSON(kind) {
			data = v.raw
			if !isJSON(kind) {
				kind = "application/json"
			}
		}
		// The writer escapes characters that would end the name.
		head.Set("Content-Disposition", disposition(name))
	}
	if kind != "" {
		head.Set("Content-Type", kind)
	}
	part, err := w.CreatePart(head)
	if err != nil {
		return fmt.Errorf("writing the body: %w", err)
	}
	if _, err := part.Write(data); err != nil {
		return fmt.Errorf("writing the body: %w", err)
	}
	return nil
}

// firstPlain returns the first media type without a wildcard, or "".
func firstPlain(kinds []string) string {
	for _, kind := range kinds {
		if !strings.Contains(kind, "*") {
			return kind
		}
	}
	return ""
}

// fileKind returns the media type of a file: that of the image, audio or video in it, if the document
// allows it among others, as in "image/png, image/jpeg" and "image/*". Otherwise it is the first type
// without a wildcard, or "". Other content, such as CSV, cannot be told from its bytes.
func fileKind(kinds []string, data []byte) string {
	found := cleanMedia(http.DetectContentType(data))
	group, _, _ := strings.Cut(found, "/")
	media := group == "image" || group == "audio" || group == "video"
	if media && (slices.Contains(kinds, found) || slices.Contains(kinds, group+"/*")) {
		return found
	}
	return firstPlain(kinds)
}

// disposition returns the header that names a field, with characters escaped that would end the name.
func disposition(name string) string {
	escaped := strings.NewReplacer("\\", "\\\\", `"`, "%22", "\r", "%0D", "\n", "%0A").Replace(name)
	return `form-data; name="` + escaped + `"`
}
