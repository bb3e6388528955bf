package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/launch/adapt"
)

// request creates the HTTP request of a call. Its errors are sentences for the caller and contain
// no values.
func (op *operation) request(ctx context.Context, arguments json.RawMessage) (*http.Request, error) {
	members, err := readMembers(arguments)
	if err != nil {
		return nil, err
	}
	values := make(map[string]value, len(members))
	for _, m := range members {
		v, err := read(m.raw)
		if err != nil {
			return nil, err
		}
		values[m.name] = v
	}
	path, err := op.path(values)
	if err != nil {
		return nil, err
	}
	query, err := op.query(values)
	if err != nil {
		return nil, err
	}
	var content []byte
	kind := ""
	if b := op.body; b != nil {
		v, given := values[b.key]
		switch {
		case given:
			if content, kind, err = b.write(v); err != nil {
				return nil, err
			}
		case b.required:
			return nil, fmt.Errorf("the argument %q is missing; add it.", b.key)
		}
	}
	address := strings.TrimRight(op.base.Scheme+"://"+op.base.Host+op.base.EscapedPath(), "/") + path
	if query != "" {
		address += "?" + query
	}
	u, err := url.Parse(address)
	if err != nil || adapt.OriginOf(u) != adapt.OriginOf(op.base) {
		return nil, errors.New("the arguments do not form a valid URL of the service; correct them.")
	}
	req, err := http.NewRequestWithContext(ctx, op.method, u.String(), bytes.NewReader(content))
	if err != nil {
		return nil, errors.New("the arguments do not form a valid request; correct them.")
	}
	if kind == "" {
		req.Body, req.GetBody, req.ContentLength = http.NoBody, nil, 0
	} else {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Accept", op.accept)
	req.Header.Set("User-Agent", "callyard")
	return req, op.headers(req, values)
}

// path creates the path and checks it as a whole, because harmless parts can form two dots together.
func (op *operation) path(values map[string]value) (string, error) {
	var b strings.Builder
	for _, piece := range op.pieces {
		if piece.param == nil {
			b.WriteString(piece.text)
			continue
		}
		p := piece.param
		v, given := values[p.key]
		if !given || v.kind == '0' {
			return "", fmt.Errorf("the argument %q is missing; add it.", p.key)
		}
		text, err := p.path(v)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	path := b.String()
	if dotted(path) {
		return "", errors.New("a path parameter contains the path segment \".\" or \"..\", which changes the path; remove it.")
	}
	return escapeText(path), nil
}

// escapeText escapes characters that a template may contain and a URL cannot.
func escapeText(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if c := path[i]; c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// dotted reports whether a path segment is "." or "..", also after decoding it once or twice,
// because some servers decode before they check.
func dotted(path string) bool {
	for range 4 {
		for part := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' || c == ';' }) {
			if part == "." || part == ".." {
				return true
			}
		}
		plain, err := url.PathUnescape(path)
		if err != nil || plain == path {
			return false
		}
		path = plain
	}
	return false
}

func (op *operation) query(values map[string]value) (string, error) {
	var out []string
	if op.literal != "" {
		out = append(out, op.literal)
	}
	for _, p := range op.params {
		if p.in != "query" {
			continue
		}
		v, given := values[p.key]
		if !given || v.kind == '0' {
			if p.required {
				return "", fmt.Errorf("the argument %q is missing; add it.", p.key)
			}
			continue
		}
		how := escapePart
		if p.reserved {
			how = escapeLoosely
		}
		fields, err := p.fields(v, how, op.free("query"))
		if err != nil {
			return "", err
		}
		out = append(out, fields...)
	}
	for _, c := range op.carried {
		if c.in == "query" {
			out = append(out, escapePart(c.name)+"="+escapePart(c.value))
		}
	}
	return strings.Join(out, "&"), nil
}

// free returns a function that reports whether callers may choose a name in a place. Names that
// have a meaning there are not free.
func (op *operation) free(in string) func(string) bool {
	return func(name string) bool {
		if op.fixed[place(in, name)] {
			return false
		}
		if literal, _ := url.ParseQuery(op.literal); in == "query" && literal.Has(name) {
			return false
		}
		for _, p := range op.params {
			if p.in == in && p.name == name {
				return false
			}
		}
		return true
	}
}

// headers sets headers and cookies, credentials last.
func (op *operation) headers(req *http.Request, values map[string]value) error {
	var cookies []string
	for _, p := range op.params {
		if p.in != "header" && p.in != "cookie" {
			continue
		}
		v, given := values[p.key]
		if !given || v.kind == '0' {
			if p.required {
				return fmt.Errorf("the argument %q is missing; add it.", p.key)
			}
			continue
		}
		if p.in == "cookie" {
			fields, err := p.fields(v, escapePart, op.free("cookie"))
			if err != nil {
				return err
			}
			cookies = append(cookies, fields...)
			continue
		}
		text, err := p.header(v)
		if err != nil {
			return err
		}
		req.Header[http.CanonicalHeaderKey(p.name)] = []string{text}
	}
	for _, c := range op.carried {
		switch c.in {
		case "header":
			req.Header[http.CanonicalHeaderKey(c.name)] = []string{c.value}
		case "cookie":
			cookies = append(cookies, c.name+"="+c.value)
		}
	}
	if len(cookies) > 0 {
		req.Header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	return nil
}
