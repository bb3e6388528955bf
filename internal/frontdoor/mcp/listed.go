package mcp

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// The official SDKs reject a whole list for one definition with a member of a wrong type, so one
// server could hide the tools of all others. A definition is therefore listed without the members
// that clients cannot read. It keeps its bytes if there are none.

// entryMaker makes the entries of the lists of a server.
type entryMaker struct {
	log     *slog.Logger
	server  schema.ServerID
	changed int
	last    string
}

// one returns a definition as clients can read it.
func (f *entryMaker) one(of check, raw json.RawMessage, name string) json.RawMessage {
	fits := of(raw)
	if !bytes.Equal(fits, raw) {
		f.changed++
		f.last = name
	}
	return fits
}

func (f *entryMaker) tool(raw json.RawMessage, name string) entry {
	raw = f.one(listedTool, raw, name)
	e := entryOf(raw, name)
	if legacy := legacyTool(raw); !bytes.Equal(legacy, raw) {
		other := entryOf(legacy, name)
		e.legacy = &other
	}
	return e
}

// resource returns a resource or a template. One without a name, which is required, gets its URI as name.
func (f *entryMaker) resource(raw json.RawMessage, uri string) json.RawMessage {
	fits := f.one(listedResource, raw, uri)
	if get(fits, "name") == nil {
		fits = rawjson.With(fits, "name", quote(uri))
	}
	return fits
}

// done logs one line: there may be thousands of such definitions.
func (f *entryMaker) done() {
	if f.changed > 0 {
		f.log.Warn("definitions that MCP clients cannot read are listed without the faulty members", "server", f.server, "definitions", f.changed, "one", f.last)
	}
}

// check returns a value as clients can read it: the value itself, the value without some of its
// members, or nil if clients cannot read any of it.
type check func(value []byte) []byte

// Members of definitions that clients check.
var (
	anyText    = typed("string")
	anyBoolean = typed("boolean")
	anyInteger = typed("integer")
	anyTexts   = array(anyText)
	anyObject  = fields{}.check()
	anyIcons   = array(fields{"src": anyText, "mimeType": anyText, "sizes": anyTexts, "theme": word("light", "dark")}.check("src"))
	hints      = fields{"title": anyText, "readOnlyHint": anyBoolean, "destructiveHint": anyBoolean, "idempotentHint": anyBoolean, "openWorldHint": anyBoolean}.check()
	notes      = fields{"audience": array(word("user", "assistant")), "priority": fraction, "lastModified": checkTime}.check()
	input      = array(fields{"name": anyText, "title": anyText, "description": anyText, "required": anyBoolean}.check("name"))

	// Clients forward schemas to providers, which refuse all tools for one "required": null.
	objectSchema = fields{"properties": subschemas, "required": anyTexts}.check()

	listedTool = fields{
		"title": anyText, "description": anyText, "icons": anyIcons, "_meta": anyObject, "inputSchema": objectSchema, "outputSchema": objectSchema, "annotations": hints,
		"execution": fields{"taskSupport": word("required", "optional", "forbidden")}.check(),
	}.check()
	listedResource = fields{"name": anyText, "title": anyText, "description": anyText, "mimeType": anyText, "size": anyInteger, "icons": anyIcons, "_meta": anyObject, "annotations": notes}.check()
	listedPrompt   = fields{"title": anyText, "description": anyText, "icons": anyIcons, "_meta": anyObject, "arguments": input}.check()

	// The legacy era requires an object as the result of a tool, and object schemas for properties.
	legacySchema = fields{"properties": properties, "required": anyTexts}.check()
	legacyTool   = fields{"inputSchema": legacySchema, "outputSchema": legacyOutput}.check()
)

// fields are the checks of the members of an object. Other members are kept.
type fields map[string]check

// check returns the check of an object, which needs the required members.
func (of fields) check(required ...string) check {
	return func(value []byte) []byte {
		if !isObject(value) {
			return nil
		}
		same := true
		of.each(value, func(_ string, was, now []byte) { same = same && bytes.Equal(was, now) })
		if !same {
			kept := []byte{'{'}
			of.each(value, func(name string, _, now []byte) {
				if now != nil {
					kept = appendMember(kept, name, now)
				}
			})
			value = append(kept, '}')
		}
		if slices.ContainsFunc(required, func(name string) bool { return get(value, name) == nil }) {
			return nil
		}
		return value
	}
}

// each visits the members of an object, as they are and as clients can read them.
func (of fields) each(value []byte, visit func(name string, was, now []byte)) {
	each(value, func(name string, was []byte) {
		now := was
		if fits := of[name]; fits != nil {
			now = fits(was)
		}
		visit(name, was, now)
	})
}

func typed(want string) check {
	return func(value []byte) []byte {
		if rawjson.TypeOf(value) == want {
			return value
		}
		return nil
	}
}

func word(words ...string) check {
	return func(value []byte) []byte {
		if s, ok := str(value); ok && slices.Contains(words, s) {
			return value
		}
		return nil
	}
}

// array returns the check of an array. Elements that clients cannot read are left out.
func array(of check) check {
	return func(value []byte) []byte {
		if rawjson.TypeOf(value) != "array" {
			return nil
		}
		same, kept := true, []byte{'['}
		rawjson.Elements(value, func(from, to int) {
			now := of(value[from:to])
			if same = same && bytes.Equal(now, value[from:to]); now == nil {
				return
			}
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(kept, now...)
		})
		if same {
			return value
		}
		return append(kept, ']')
	}
}

// fraction accepts a number from 0 to 1.
func fraction(value []byte) []byte {
	var n float64
	if kind := rawjson.TypeOf(value); kind != "integer" && kind != "number" {
		return nil
	}
	if json.Unmarshal(value, &n) != nil || n < 0 || n > 1 {
		return nil
	}
	return value
}

// checkTime accepts a time with its offset.
func checkTime(value []byte) []byte {
	s, ok := str(value)
	if _, err := time.Parse(time.RFC3339, s); !ok || err != nil {
		return nil
	}
	return value
}

// subschemas accepts a map of schemas. Members that are no schemas are left out.
func subschemas(value []byte) []byte {
	of := fields{}
	each(value, func(name string, _ []byte) {
		of[name] = func(schema []byte) []byte {
			if rawjson.TypeOf(schema) == "boolean" {
				return schema
			}
			return anyObject(schema)
		}
	})
	return of.check()(value)
}

// properties writes boolean schemas as the object schemas that mean the same.
func properties(value []byte) []byte {
	of := fields{}
	each(value, func(name string, _ []byte) {
		of[name] = func(schema []byte) []byte {
			switch string(schema) {
			case "true":
				return []byte(`{}`)
			case "false":
				return []byte(`{"not":{}}`)
			}
			return anyObject(schema)
		}
	})
	return of.check()(value)
}

func legacyOutput(value []byte) []byte {
	if getString(value, "type") != "object" {
		return nil
	}
	return legacySchema(value)
}
