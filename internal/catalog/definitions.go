package catalog

import (
	"encoding/json"
	"log/slog"

	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

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
