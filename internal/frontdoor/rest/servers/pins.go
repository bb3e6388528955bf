package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/schema"
)

// maxAcceptBytes is the maximum size of the body of an acceptance in bytes.
const maxAcceptBytes = 1 << 20

// ServerPins is the answer to GET and POST /servers/{id}/pins.
type ServerPins struct {
	Server   schema.ServerID `json:"server" doc:"The id of the server." example:"everything"`
	Pin      string          `json:"pin" enum:"warn,quarantine" doc:"The pin of the server's entry." example:"quarantine"`
	Recorded *time.Time      `json:"recorded,omitempty" doc:"The time at which the definitions were first recorded; absent until then."`
	Tools    []ToolPin       `json:"tools" nullable:"false" doc:"The tools, by name."`
}

// ToolPin is one tool of ServerPins.
type ToolPin struct {
	Name    string   `json:"name" doc:"The name of the tool." example:"echo"`
	State   string   `json:"state" enum:"accepted,changed,new,gone" doc:"accepted: the definition is the accepted one. changed: the tool has another definition. new: no definition of the tool was accepted. gone: the server no longer lists the tool." example:"changed"`
	Changed []string `json:"changed,omitempty" nullable:"false" doc:"The members of the definition that differ, if the state is changed." example:"[\"description\"]"`
	// The current definition.
	Digest     string             `json:"digest,omitempty" doc:"The digest of the current definition; send it to accept this definition." example:"sha256:8f0e…"`
	Definition *openapi.AnyObject `json:"definition,omitempty" doc:"The current definition, exactly as the server sent it; only if the state is changed or new."`
	// The accepted one.
	AcceptedDigest     string             `json:"accepted_digest,omitempty" doc:"The digest of the accepted definition."`
	AcceptedDefinition *openapi.AnyObject `json:"accepted_definition,omitempty" doc:"The accepted definition; only if the state is changed."`
	AcceptedBy         string             `json:"accepted_by,omitempty" doc:"The principal that accepted the definition; absent if it was recorded at first use." example:"ops"`
	AcceptedAt         *time.Time         `json:"accepted_at,omitempty" doc:"When the definition was accepted; absent if none was."`
}

// AcceptRequest is the body of POST /servers/{id}/pins.
type AcceptRequest struct {
	Tools []AcceptTool `json:"tools" minItems:"1" nullable:"false" doc:"The definitions to accept: all of them, or none."`
}

// AcceptTool is one definition of AcceptRequest.
type AcceptTool struct {
	Name   string `json:"name" doc:"The tool." example:"echo"`
	Digest string `json:"digest" doc:"The digest of the definition that was reviewed." example:"sha256:8f0e…"`
}

// pinHandlers are the operations on accepted tool definitions.
type pinHandlers struct {
	catalog *catalog.Catalog
	groups  []string
	record  func(ctx context.Context, by schema.Principal, server schema.ServerID, accepted []catalog.Acceptance) error
	depth   int
}

func (h *pinHandlers) register(d *httpapi.Document) {
	d.AtLast(func(all map[string]*huma.Schema) { openapi.ForbidUnknownMembers(all, "AcceptRequest", "AcceptTool") })
	httpapi.Get(d, openapi.Answers(opGetPins(), "The tools with the states of their definitions.", nil), func(ctx context.Context, in *serverInput) (*ServerPins, error) {
		return pins(httpapi.Of(ctx).Operated(h.catalog), in.ID)
	})
	httpapi.HandleValue(d, opAcceptPins(d), "The definitions are accepted.", map[string]any{
		"server": "everything", "pin": "quarantine", "recorded": "2026-01-02T03:04:05Z",
		"tools": []any{map[string]any{"name": "echo", "state": "accepted", "digest": "sha256:8f0e…", "accepted_digest": "sha256:8f0e…", "accepted_by": "ops", "accepted_at": "2026-01-02T03:04:05Z"}},
	}, h.accept)
}

func opGetPins() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodGet, "/servers/{id}/pins", "get-server-pins", openapi.TagServers, "Compare tool definitions with the accepted ones",
		"The tools of a server whose entry has pin: warn or quarantine, each with its state. A changed or new tool has its current definition; a changed tool also has the accepted definition. "+
			"A server without pin returns 409.", http.StatusNotFound, http.StatusConflict), openapi.ServerParam())
}

func opAcceptPins(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/servers/{id}/pins", "accept-server-pins", openapi.TagServers, "Accept tool definitions",
		"Accepts definitions by their digest, all of them or none, for every front door; the audit record names the caller. If a tool has another definition by now, the answer is 409 and nothing is accepted. "+
			"With front_door.accept_groups only keys in one of these groups can accept definitions.", http.StatusNotFound, http.StatusConflict)
	op.Parameters = []*huma.Param{openapi.ServerParam()}
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[AcceptRequest]()), true, "The reviewed definitions.", map[string]any{"tools": []any{map[string]any{"name": "echo", "digest": "sha256:8f0e…"}}})
	return op
}

func pins(seen *catalog.Seen, id schema.ServerID) (*ServerPins, error) {
	of, err := seen.Pins(id)
	if err != nil {
		return nil, err
	}
	out := &ServerPins{Server: of.Server, Pin: of.Mode, Tools: make([]ToolPin, 0, len(of.Tools))}
	if !of.Recorded.IsZero() {
		out.Recorded = &of.Recorded
	}
	for _, t := range of.Tools {
		item := ToolPin{Name: t.Name, State: t.State, Changed: t.Fields, Digest: t.Digest}
		if t.State == catalog.PinChanged || t.State == catalog.PinNew {
			item.Definition = &openapi.AnyObject{RawMessage: t.Definition}
		}
		if pin := t.Accepted; pin != nil {
			item.AcceptedDigest, item.AcceptedBy, item.AcceptedAt = pin.Digest, pin.By, &pin.At
			if t.State == catalog.PinChanged {
				item.AcceptedDefinition = &openapi.AnyObject{RawMessage: pin.Definition}
			}
		}
		out.Tools = append(out.Tools, item)
	}
	return out, nil
}

func (h *pinHandlers) accept(x *httpapi.Exchange, r *http.Request) (now *ServerPins, err error) {
	if len(h.groups) > 0 && !slices.ContainsFunc(x.Principal.Groups, func(g string) bool { return slices.Contains(h.groups, g) }) {
		return nil, schema.Errorf(schema.KindForbidden, "Your API key is in none of the groups that can accept tool definitions (front_door.accept_groups).")
	}
	all, err := h.read(x, r)
	if err != nil {
		return nil, err
	}
	id := schema.ServerID(r.PathValue("id"))
	if err = h.catalog.Operator().Accept(r.Context(), id, all, x.Principal.Name); err != nil {
		return nil, err
	}
	if h.record != nil {
		// If the request is sent again, it accepts nothing more but is recorded again.
		if err = h.record(r.Context(), x.Principal, id, all); err != nil {
			return nil, schema.Errorf(schema.KindUnavailable, "The definitions are accepted, but the audit record was not written; send the request again. (%w)", err).RetryableAfter(time.Second)
		}
	}
	return pins(x.Operated(h.catalog), id)
}

// read parses the body of an acceptance.
func (h *pinHandlers) read(x *httpapi.Exchange, r *http.Request) ([]catalog.Acceptance, error) {
	members, err := x.ReadMembers(r, maxAcceptBytes, h.depth, "tools")
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := httpapi.ReadMember(members, "tools", true, "an array of objects with name and digest", &items); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, httpapi.BadMember("tools", "an array with at least one tool")
	}
	all := make([]catalog.Acceptance, len(items))
	for i, raw := range items {
		of, err := httpapi.ReadObject(raw, maxAcceptBytes, h.depth, "name", "digest")
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(
			httpapi.ReadMember(of, "name", true, "a string, the name of a tool", &all[i].Tool),
			httpapi.ReadMember(of, "digest", true, "a string, the digest of the definition that was reviewed", &all[i].Digest),
		); err != nil {
			return nil, err
		}
	}
	return all, nil
}
