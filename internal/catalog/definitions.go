package catalog

import (
	"encoding/json"
	"log/slog"
	"strconv"

	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

// Description is the answer to [MethodDescribe]. Definitions is nil until the
// worker has read them.
type Description struct {
	Digest      string              `json:"digest"`
	Definitions *schema.Definitions `json:"definitions"`
}

// Encode returns d as JSON in which every definition stands byte for byte as the
// server sent it. encoding/json would take out white space and escape "<".
func (d *Description) Encode() []byte {
	b := append(strconv.AppendQuote([]byte(`{"digest":`), d.Digest), `,"definitions":`...)
	if d.Definitions == nil {
		return append(b, "null}"...)
	}
	b = appendList(append(b, '{'), "tools", d.Definitions.Tools)
	b = appendList(append(b, ','), "resources", d.Definitions.Resources)
	b = appendList(append(b, ','), "resource_templates", d.Definitions.ResourceTemplates)
	b = appendList(append(b, ','), "prompts", d.Definitions.Prompts)
	if len(d.Definitions.About) > 0 {
		b = append(append(b, `,"about":`...), d.Definitions.About...)
	}
	return append(b, "}}"...)
}

func appendList(b []byte, name string, list []json.RawMessage) []byte {
	b = append(strconv.AppendQuote(b, name), ':')
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, raw := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	return append(b, ']')
}

// definitions is what one digest stands for.
type definitions struct {
	raw   *schema.Definitions
	tools map[string]*schema.Tool
	order []*schema.Tool
	found index
}

// read takes a server's definitions apart just far enough to find its tools.
func read(server string, raw *schema.Definitions, log *slog.Logger) *definitions {
	d := &definitions{raw: raw, tools: make(map[string]*schema.Tool, len(raw.Tools))}
	var twice, nameless int
	var again string // a name that came twice
	for _, def := range raw.Tools {
		var head struct {
			Name        string          `json:"name"`
			Input       json.RawMessage `json:"inputSchema"`
			Annotations struct {
				ReadOnly   bool `json:"readOnlyHint"`
				Idempotent bool `json:"idempotentHint"`
			} `json:"annotations"`
		}
		if err := json.Unmarshal(def, &head); err != nil || head.Name == "" {
			nameless++
			continue
		}
		if d.tools[head.Name] != nil {
			twice++
			again = head.Name
			continue
		}
		t := &schema.Tool{
			Server: server, Name: head.Name, Raw: def, Digest: digest.Of(def), Input: head.Input,
			ReadOnly: head.Annotations.ReadOnly, Idempotent: head.Annotations.Idempotent,
		}
		d.tools[t.Name] = t
		d.order = append(d.order, t)
	}
	// One line for each of a server's lists: there may be thousands, and they are read again and again.
	if twice > 0 {
		log.Warn("a server has several tools of one name; the first of each counts", "server", server, "tool", again, "left_out", twice)
	}
	if nameless > 0 {
		log.Warn("tools without a readable name are left out", "server", server, "left_out", nameless)
	}
	d.found = newIndex(d.order)
	return d
}
