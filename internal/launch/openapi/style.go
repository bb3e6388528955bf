package openapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// param is one parameter of an operation.
type param struct {
	key      string // its name in the arguments
	name     string
	in       string // path, query, header or cookie
	about    string
	schema   any // as in the document
	required bool
	style    string
	explode  bool
	reserved bool // reserved characters of a query are not escaped
	json     bool // encoded as JSON
}

// styles are the styles of each place, the default first.
var styles = map[string][]string{
	"path":   {"simple", "label", "matrix"},
	"query":  {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
	"header": {"simple"},
	"cookie": {"form"},
}

func (p *param) setStyle(style string, explode *bool) (why string) {
	known := styles[p.in]
	if known == nil {
		return fmt.Sprintf("its parameter %q has an unknown location", p.name)
	}
	p.style = known[0]
	if style != "" {
		p.style = ""
		for _, s := range known {
			if s == style {
				p.style = s
			}
		}
		if p.style == "" {
			return fmt.Sprintf("its parameter %q has a style that a %s does not support", p.name, p.in)
		}
	}
	p.explode = p.style == "form"
	if explode != nil {
		p.explode = *explode
	}
	return ""
}

// refused returns the error for a value that cannot be encoded. It never contains the value.
func (p *param) refused(why string) error {
	return fmt.Errorf("the argument %q %s", p.key, why)
}

// scalar returns the text of a value that is not an array or object.
func (p *param) scalar(v value) (string, error) {
	switch v.kind {
	case 's', 'n', 'b':
		return v.text, nil
	case '0':
		return "", p.refused("contains null, which cannot be encoded in a request; omit it.")
	}
	return "", p.refused("is nested too deeply for its style; use a flat value.")
}

// flat returns the texts of an array, or of an object's members.
func (p *param) flat(v value) (names, texts []string, err error) {
	for _, item := range v.items {
		text, err := p.scalar(item)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, text)
	}
	for _, m := range v.members {
		if m.value.kind == '0' {
			continue // a member without a value is omitted
		}
		text, err := p.scalar(m.value)
		if err != nil {
			return nil, nil, err
		}
		names, texts = append(names, m.name), append(texts, text)
	}
	return names, texts, nil
}

// joined encodes an array as a,b and an object as k,v,k,v, or as k=v,k=v if equals is set. It
// refuses a text that contains the separator after escaping, because the service would read two
// values.
func (p *param) joined(names, texts []string, between string, equals bool, escape func(string) string) (string, error) {
	var b strings.Builder
	for i, text := range texts {
		if i > 0 {
			b.WriteString(between)
		}
		text = escape(text)
		if names != nil {
			name := escape(names[i])
			if strings.Contains(name, between) || equals && strings.Contains(name, "=") {
				return "", p.refused("has a name that contains the separator of its style; remove it.")
			}
			b.WriteString(name)
			if equals {
				b.WriteByte('=')
			} else {
				b.WriteString(between)
			}
		}
		if strings.Contains(text, between) {
			return "", p.refused("has a value that contains the separator of its style, so the service would read two values; remove it.")
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// path encodes a path parameter.
func (p *param) path(v value) (string, error) {
	if p.json {
		return escapePart(string(v.raw)), nil
	}
	if v.kind != 'a' && v.kind != 'o' {
		text, err := p.scalar(v)
		if err != nil {
			return "", err
		}
		if text == "" {
			return "", p.refused("is empty, which would change the path; set a value.")
		}
		switch p.style {
		case "label":
			return "." + escapePart(text), nil
		case "matrix":
			return ";" + escapePart(p.name) + "=" + escapePart(text), nil
		}
		return escapePart(text), nil
	}
	names, texts, err := p.flat(v)
	if err != nil {
		return "", err
	}
	if len(texts) == 0 {
		return "", p.refused("is empty, which would change the path; set a value.")
	}
	before, between, equals := "", ",", false
	switch {
	case p.style == "label" && p.explode:
		before, between, equals = ".", ".", true
	case p.style == "label":
		before = "."
	case p.style == "matrix" && p.explode && names != nil:
		before, between, equals = ";", ";", true
	case p.style == "matrix" && p.explode:
		before = ";" + escapePart(p.name) + "="
		between = before
	case p.style == "matrix":
		before = ";" + escapePart(p.name) + "="
	default:
		equals = p.explode
	}
	text, err := p.joined(names, texts, between, equals, escapePart)
	return before + text, err
}

// header encodes a header parameter.
func (p *param) header(v value) (string, error) {
	text := ""
	switch {
	case p.json:
		text = string(v.raw)
	case v.kind == 'a' || v.kind == 'o':
		names, texts, err := p.flat(v)
		if err != nil {
			return "", err
		}
		if text, err = p.joined(names, texts, ",", p.explode, func(s string) string { return s }); err != nil {
			return "", err
		}
	default:
		var err error
		if text, err = p.scalar(v); err != nil {
			return "", err
		}
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", p.refused("contains a line break or another character that is not allowed in headers; remove it.")
	}
	return strings.TrimSpace(text), nil
}

// fields encodes a query or cookie parameter, or a field of a form, as name=value texts. allow
// reports whether callers may choose a name.
func (p *param) fields(v value, escape func(string) string, allow func(name string) bool) ([]string, error) {
	name := escape(p.name)
	if p.json {
		return []string{name + "=" + escape(string(v.raw))}, nil
	}
	if p.style == "deepObject" {
		return p.deep(nil, name, v, escape, 0)
	}
	if v.kind != 'a' && v.kind != 'o' {
		text, err := p.scalar(v)
		return []string{name + "=" + escape(text)}, err
	}
	names, texts, err := p.flat(v)
	if err != nil {
		return nil, err
	}
	if p.explode {
		var out []string
		for i, text := range texts {
			if names == nil {
				out = append(out, name+"="+escape(text))
				continue
			}
			if !allow(names[i]) {
				return nil, p.refused("has a member with the name of another parameter; remove it.")
			}
			out = append(out, escape(names[i])+"="+escape(text))
		}
		return out, nil
	}
	between := map[string]string{"spaceDelimited": "%20", "pipeDelimited": "%7C"}[p.style]
	if between == "" {
		between = ","
	}
	text, err := p.joined(names, texts, between, false, escape)
	return []string{name + "=" + text}, err
}

// deep encodes an object as name[a][b]=value. The specification defines neither arrays nor plain
// values for this style, but public documents use them, such as Stripe's. They are encoded as Rack,
// PHP and qs read them: an array as name[]=value, an array with objects as name[0][a]=value, and a
// plain value as name=value.
func (p *param) deep(out []string, name string, v value, escape func(string) string, depth int) ([]string, error) {
	if depth > 8 {
		return nil, p.refused("is nested too deeply for its style; use a flatter value.")
	}
	var err error
	switch v.kind {
	case '0':
		return out, nil
	case 'o':
		for _, m := range v.members {
			if out, err = p.deep(out, name+"%5B"+escape(m.name)+"%5D", m.value, escape, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case 'a':
		nested := slices.ContainsFunc(v.items, func(v value) bool { return v.kind == 'o' || v.kind == 'a' })
		for i, item := range v.items {
			at := "%5B%5D"
			switch {
			case nested:
				at = "%5B" + strconv.Itoa(i) + "%5D"
			case item.kind == '0': // without an index, omitting it would move the others
				return nil, p.refused("contains null, which cannot be encoded in a request; omit it.")
			}
			if out, err = p.deep(out, name+at, item, escape, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return append(out, name+"="+escape(v.text)), nil
}

// escapePart escapes everything but unreserved characters as %XX.
func escapePart(s string) string { return escape(s, "") }

// escapeLoosely does not escape reserved characters, except those that end a value or have another
// meaning in a query.
func escapeLoosely(s string) string { return escape(s, ":/?@!$'()*,;") }

func escape(s, keep string) string {
	const hex = "0123456789ABCDEF"
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = isUnescaped(s[i], keep)
	}
	if plain {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		if c := s[i]; isUnescaped(c, keep) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

func isUnescaped(c byte, keep string) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~' ||
		strings.IndexByte(keep, c) >= 0
}
