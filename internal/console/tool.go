package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// hints lists the tool annotations that pages show, with their labels.
var hints = []struct{ member, label string }{
	{"readOnlyHint", "read-only"}, {"destructiveHint", "destructive"}, {"idempotentHint", "idempotent"}, {"openWorldHint", "open world"},
}

type hint struct {
	Label string
	Value string
}

type toolView struct {
	toolRow
	Title      string
	Enabled    bool
	Known      bool   // the definition is available
	Past       string // the reason why the definition is not the current one; empty if it is
	Definition []byte
	Input      json.RawMessage
	Output     []byte
	Hints      []hint
	Digest     string
	Pinned     bool
	SwitchTo   string // "on" or "off": the action of the form
	Token      string // token of the switch form
	Try        tryView
	Done       string
	Refusal    string
	Reason     string // the submitted reason of a refused form
}

// tool serves the page of one tool, with the form to try it.
func (c toolPages) tool(w http.ResponseWriter, r *http.Request, v Visit) error {
	q := r.URL.Query()
	if q.Get("server") == "" || q.Get("tool") == "" {
		http.Redirect(w, r, Root+"/tools", http.StatusSeeOther)
		return nil
	}
	page, err := c.viewTool(r.Context(), v, q.Get("server"), q.Get("tool"))
	if err != nil {
		return c.orKey(w, r, err)
	}
	page.Done = doneOf(r, v)
	page.Try.start(page.Input)
	return c.renderTool(w, v, http.StatusOK, page)
}

func (c toolPages) renderTool(w http.ResponseWriter, v Visit, status int, page *toolView) error {
	page.Try.show(c.o.FrontDoor(), page.Server, page.Name, v.Key != "")
	if page.Try.Result.HasImages() {
		allowImages(w)
	}
	return c.render(w, v, status, "tool", view{Title: page.Name + " on " + page.Server, Here: Root + "/tools", Page: page})
}

// maxPages limits the search for one tool among those of its server.
const maxPages = 20

// findTool returns a tool of a server from the list of tools.
func (c toolPages) findTool(ctx context.Context, v Visit, server, name string) (found callyard.ToolItem, err error) {
	limit := int64(500)
	params := callyard.ListToolsParams{Server: &server, Limit: &limit}
	for range maxPages {
		list, err := get[callyard.ToolList](ctx, c.Console, v, with(api.ListTools, &params))
		if err != nil {
			return found, err
		}
		for _, t := range list.Tools {
			if t.Name == name && t.Server == server {
				return t, nil
			}
		}
		for _, t := range list.Quarantined {
			if t.Name == name {
				return callyard.ToolItem{Server: server, Name: name, Enabled: true}, nil
			}
		}
		if params.Cursor = list.NextCursor; params.Cursor == nil {
			break
		}
	}
	return found, schema.Errorf(schema.KindNotFound, "The server %q has no tool %q, or its tools are not known yet.", server, name)
}

// lastKnown returns the last known definition of a tool that its server does not offer now, and the
// reason why it is not the current one. If not even the server is known, it returns cause.
func (c toolPages) lastKnown(ctx context.Context, v Visit, server, name string, cause error) (t callyard.ToolItem, why string, err error) {
	s, err := get[callyard.ServerItem](ctx, c.Console, v, with(api.GetServer, server))
	if err != nil {
		return t, "", cause
	}
	t = callyard.ToolItem{Server: server, Name: name, Enabled: true}
	pins, err := get[serverPins](ctx, c.Console, v, with(api.GetServerPins, server))
	if err == nil {
		for _, p := range pins.Tools {
			if p.Name == name && len(p.AcceptedDefinition) > 0 {
				t.Definition = p.AcceptedDefinition
				return t, "The server does not offer the tool now. This is the definition that was accepted last; a call is refused.", nil
			}
		}
	}
	if s.InitializationState == "initialized" {
		return t, "", schema.Errorf(schema.KindNotFound, "The server %q offers no tool %q now.", server, name)
	}
	why = "The server is not connected, and this front door has not seen its tools: the definition is not known."
	if fault := text(s.Error); fault != "" {
		why += " " + fault
	}
	return t, why, nil
}

// viewTool requests the data of a tool's page from the front door.
func (c toolPages) viewTool(ctx context.Context, v Visit, server, name string) (*toolView, error) {
	t, err := c.findTool(ctx, v, server, name)
	past := ""
	if kind := schema.KindOf(err); kind == schema.KindNotFound || kind == schema.KindUnavailable {
		t, past, err = c.lastKnown(ctx, v, server, name, err)
	}
	if err != nil {
		return nil, err
	}
	rows := []toolRow{rowOf(t)}
	page := &toolView{toolRow: rows[0], Enabled: t.Enabled, Known: len(t.Definition) > 0, Past: past, SwitchTo: "off", Token: v.Token(Root + "/tool/switch")}
	if !t.Enabled {
		page.SwitchTo = "on"
	}
	all, err := get[callyard.Preflight](ctx, c.Console, v, with(api.Preflight, &callyard.PreflightParams{Tool: []string{server + "/" + name}}))
	if err == nil && len(all.Tools) == 1 {
		p := all.Tools[0]
		page.Digest, page.Pinned = text(p.Digest), p.Pinned
		c.decide(ctx, v, rows)
		page.toolRow = rows[0]
	}
	page.Definition, page.Input = pretty(t.Definition), rawjson.Get(t.Definition, "inputSchema")
	page.Title, _ = rawjson.Text(rawjson.Get(t.Definition, "title"))
	if out := rawjson.Get(t.Definition, "outputSchema"); out != nil {
		page.Output = pretty(out)
	}
	annotations := rawjson.Get(t.Definition, "annotations")
	for _, h := range hints {
		if value := rawjson.Get(annotations, h.member); value != nil {
			page.Hints = append(page.Hints, hint{h.label, map[bool]string{true: "yes", false: "no"}[string(value) == "true"]})
		}
	}
	page.Try.Token, page.Try.Once = v.Token(Root+"/tool"), rand.Text()
	return page, nil
}

// switchTool disables or enables a tool.
func (c toolPages) switchTool(w http.ResponseWriter, r *http.Request, v Visit) error {
	f := r.PostForm
	server, name, on := f.Get("server"), f.Get("tool"), f.Get("to") == "on"
	body := callyard.SwitchRequest{Enabled: on}
	if reason := strings.TrimSpace(f.Get("reason")); reason != "" && !on {
		body.Reason = &reason
	}
	if _, err := c.ask(r.Context(), v, with3(api.SwitchTool, server, name, body)); err != nil {
		page, readErr := c.viewTool(r.Context(), v, server, name)
		if readErr != nil {
			return err
		}
		d := problem.Of(err)
		page.Refusal, page.Reason = d.Detail, f.Get("reason")
		page.Try.start(page.Input)
		return c.renderTool(w, v, d.Status, page)
	}
	done := map[bool]string{true: "on", false: "off"}[on]
	c.acted(v, "switch "+done, "server", server, "tool", name)
	http.Redirect(w, r, at(Root+"/tool", "server", server, "tool", name, "done", v.done(done)), http.StatusSeeOther)
	return nil
}
