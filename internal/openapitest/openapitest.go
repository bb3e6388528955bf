// Package openapitest compares an OpenAPI document with the server that it describes. It generates
// requests that the document forbids in exactly one place, and requests at the limits of what it
// allows. It is for tests only.
package openapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Request is a request that tests one parameter or one member of a body.
type Request struct {
	Method string
	// Path is the escaped path with its query.
	Path   string
	Header http.Header
	Body   []byte // nil if there is none
	// Name is the parameter or the member. Why describes the tested value.
	Name, Why string
}

// String describes the test.
func (r *Request) String() string {
	return fmt.Sprintf("%s %s, %s: %s", r.Method, r.Path, r.Name, r.Why)
}

// Known holds values that the document does not have: path parameters by name, and bodies by operation
// ("POST /decisions").
type Known struct {
	Path   map[string]string
	Bodies map[string]string
}

// schema holds the used members of a JSON Schema.
type schema struct {
	Ref                  string             `json:"$ref"`
	AllOf                []schema           `json:"allOf"`
	Type                 string             `json:"type"`
	Enum                 []any              `json:"enum"`
	Format               string             `json:"format"`
	Pattern              string             `json:"pattern"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	MinLength            *int               `json:"minLength"`
	MaxLength            *int               `json:"maxLength"`
	MinItems             *int               `json:"minItems"`
	MaxItems             *int               `json:"maxItems"`
	MaxProperties        *int               `json:"maxProperties"`
	Items                *schema            `json:"items"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
}

type parameter struct {
	Name    string  `json:"name"`
	In      string  `json:"in"`
	Schema  *schema `json:"schema"`
	Example any     `json:"example"`
}

type operation struct {
	Parameters  []parameter `json:"parameters"`
	RequestBody struct {
		Content map[string]struct {
			Schema  *schema `json:"schema"`
			Example any     `json:"example"`
		} `json:"content"`
	} `json:"requestBody"`
}

type document struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

// follow returns the target of a reference.
func (d *document) follow(s *schema) *schema {
	for s != nil && (s.Ref != "" || len(s.AllOf) == 1) {
		if len(s.AllOf) == 1 {
			s = &s.AllOf[0]
			continue
		}
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// try is a value and its description.
type try struct {
	value any // absent means that the member is left out
	why   string
}

type absent struct{}

// texts returns the values of a parameter that its schema forbids or, if inside is true, those at its
// limits.
func (d *document) texts(s *schema, inside bool) (tries []try) {
	s = d.follow(s)
	add := func(value any, why string) { tries = append(tries, try{value, why}) }
	switch {
	case s == nil:
	case s.Type == "array":
		return d.texts(s.Items, inside)
	case inside && len(s.Enum) > 0:
		for _, one := range s.Enum {
			add(one, "a word of the list")
		}
	case len(s.Enum) > 0:
		add("nonsense", "a word that is not in the list")
		add("", "nothing")
	case s.Type == "boolean" && inside:
		add("true", "true")
		add("false", "false")
	case s.Type == "boolean":
		for _, word := range []string{"yes", "1", "TRUE", ""} {
			add(word, fmt.Sprintf("%q where a boolean is", word))
		}
	case s.Type == "integer" && inside:
		add(number(s.Minimum, 0, 0), "the least")
		add(number(s.Maximum, 0, 1<<30), "the most")
	case s.Type == "integer":
		add("nonsense", "no number")
		add("", "nothing")
		add("1.5", "no whole number")
		if s.Minimum != nil {
			add(number(s.Minimum, -1, 0), "less than the least")
		}
		if s.Maximum != nil {
			add(number(s.Maximum, 1, 0), "more than the most")
		}
	case s.Format == "date-time" && inside:
		add("2026-01-02T03:04:05Z", "a time")
	case s.Format == "date-time":
		add("yesterday", "no time")
	case s.Pattern != "" && !inside:
		add(strings.Repeat("x", 300), "a text that is too long for the pattern")
	case s.Pattern == "" && inside:
		add("zzz", "any text")
	case s.MaxLength != nil && !inside:
		add(strings.Repeat("x", *s.MaxLength+1), "a text that is too long")
	}
	return tries
}

func number(bound *float64, more, otherwise float64) string {
	if bound != nil {
		otherwise = *bound + more
	}
	return fmt.Sprintf("%.0f", otherwise)
}

// values returns JSON values that a schema forbids.
func (d *document) values(s *schema) (tries []try) {
	add := func(value any, why string) { tries = append(tries, try{value, why}) }
	switch {
	case len(s.Enum) > 0:
		add("nonsense", "a word that is not in the list")
	case s.Type == "boolean":
		add("yes", "a text where a boolean is")
	case s.Type == "integer":
		add("nonsense", "a text where a number is")
		add(1.5, "no whole number")
		if s.Minimum != nil {
			add(*s.Minimum-1, "less than the least")
		}
		if s.Maximum != nil {
			add(*s.Maximum+1, "more than the most")
		}
	case s.Type == "string":
		add(7, "a number where a text is")
		if s.MaxLength != nil {
			add(strings.Repeat("x", *s.MaxLength+1), "a text that is too long")
		}
		if s.Format == "date-time" {
			add("yesterday", "no time")
		}
		if s.Pattern != "" {
			add(strings.Repeat("x ", 200), "a text that does not fit the pattern")
		}
	case s.Type == "array":
		add(map[string]any{}, "an object where a list is")
		if s.MinItems != nil {
			add([]any{}, "an empty list")
		}
		if s.MaxItems != nil {
			add(make([]any, *s.MaxItems+1), "a list that is too long")
		}
	case s.Type == "object":
		add([]any{}, "a list where an object is")
		if s.MaxProperties != nil {
			many := make(map[string]any)
			for i := range *s.MaxProperties + 1 {
				many[fmt.Sprint("x", i)] = "x"
			}
			add(many, "too many members")
		}
		var of schema
		if json.Unmarshal(s.AdditionalProperties, &of) == nil && of.Type != "" {
			for _, t := range d.values(&of) {
				add(map[string]any{"x": t.value}, "in a member: "+t.why)
			}
		}
	}
	return tries
}

// edit calls each with copies of body that the schema forbids, with one fault in each. name is the
// member at fault.
func (d *document) edit(s *schema, body any, each func(body any, name, why string)) {
	s = d.follow(s)
	if s == nil || s.Type != "object" {
		return
	}
	whole, ok := body.(map[string]any)
	if !ok {
		return
	}
	with := func(name string, value any) map[string]any {
		changed := maps.Clone(whole)
		if changed[name] = value; value == (absent{}) {
			delete(changed, name)
		}
		return changed
	}
	if string(s.AdditionalProperties) == "false" {
		each(with("nonsense", true), "nonsense", "an unknown member")
	}
	for _, name := range s.Required {
		each(with(name, absent{}), name, "is left out")
	}
	for name, of := range s.Properties {
		of = d.follow(of)
		if of == nil {
			continue
		}
		for _, t := range d.values(of) {
			each(with(name, t.value), name, t.why)
		}
		inner, nested := whole[name]
		if list, is := inner.([]any); is && len(list) > 0 && of.Type == "array" {
			d.edit(of.Items, list[0], func(item any, at, why string) { each(with(name, append([]any{item}, list[1:]...)), at, why) })
		} else if nested {
			d.edit(of, inner, func(inner any, at, why string) { each(with(name, inner), at, why) })
		}
	}
}

// Outside returns requests that the document forbids. The server must refuse each with a status
// from 400 to 499 and a problem that contains Name.
func Outside(openapi []byte, known Known) ([]Request, error) { return requests(openapi, known, false) }

// Inside returns requests whose parameters are at the limits of the document. The server must not
// refuse any because of Name.
func Inside(openapi []byte, known Known) ([]Request, error) { return requests(openapi, known, true) }

func requests(openapi []byte, known Known, inside bool) (all []Request, err error) {
	var d document
	if err := json.Unmarshal(openapi, &d); err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	for path, operations := range d.Paths {
		for verb, op := range operations {
			method := strings.ToUpper(verb)
			good := Request{Method: method, Path: path, Header: http.Header{}}
			content := op.RequestBody.Content["application/json"]
			body := content.Example
			if text, ok := known.Bodies[method+" "+path]; ok {
				if err := json.Unmarshal([]byte(text), &body); err != nil {
					return nil, fmt.Errorf("the known body of %s %s: %w", method, path, err)
				}
			}
			if body != nil {
				if good.Body, err = json.Marshal(body); err != nil {
					return nil, fmt.Errorf("the example of %s %s: %w", method, path, err)
				}
				good.Header.Set("Content-Type", "application/json")
			} else if content.Schema != nil {
				return nil, fmt.Errorf("%s %s has a body and no example of it", method, path)
			}
			for _, p := range op.Parameters {
				if p.In == "path" {
					value, ok := known.Path[p.Name]
					if !ok {
						return nil, fmt.Errorf("%s %s: nobody knows a value of %s", method, path, p.Name)
					}
					good.Path = strings.ReplaceAll(good.Path, "{"+p.Name+"}", url.PathEscape(value))
				}
			}
			all = append(all, d.parameters(good, op.Parameters, inside)...)
			if inside || body == nil {
				continue
			}
			d.edit(content.Schema, body, func(body any, name, why string) {
				one := good
				one.Name, one.Why = name, why
				one.Body, err = json.Marshal(body)
				all = append(all, one)
			})
			if err != nil {
				return nil, fmt.Errorf("a body of %s %s: %w", method, path, err)
			}
		}
	}
	slices.SortFunc(all, func(a, b Request) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// parameters returns copies of a good request, each with one changed parameter.
func (d *document) parameters(good Request, list []parameter, inside bool) (all []Request) {
	if !inside {
		one := good
		one.Path, one.Name, one.Why = good.Path+"?nonsense=1", "nonsense", "an unknown parameter"
		all = append(all, one)
	}
	for _, p := range list {
		for _, t := range d.texts(p.Schema, inside) {
			text := fmt.Sprint(t.value)
			one := good
			one.Name, one.Why = p.Name, t.why
			switch p.In {
			case "query":
				one.Path = good.Path + "?" + url.Values{p.Name: {text}}.Encode()
			case "header":
				if text == "" {
					continue // an empty header counts as missing
				}
				one.Header = good.Header.Clone()
				one.Header.Set(p.Name, text)
			default:
				continue
			}
			all = append(all, one)
		}
	}
	return all
}
