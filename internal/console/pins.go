package console

import (
	"context"
	"encoding/json"
	"net/http"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/textdiff"
)

// pinsView compares the definitions of a server's tools with the accepted ones.
type pinsView struct {
	Pin      string
	Tools    []pinnedTool // changed and new ones
	Accepted int
	Token    string
}

// pinnedTool is a tool whose definition has not been accepted.
type pinnedTool struct {
	Name, State, Digest string
	Lines               []textdiff.Line // for a changed one
	Definition          []byte
	Before              string // time and author of the earlier acceptance
}

// serverPins is the response of GET /servers/{id}/pins with the definitions verbatim. The generated
// client would reorder their members.
type serverPins struct {
	Pin   string `json:"pin"`
	Tools []struct {
		Name               string          `json:"name"`
		State              string          `json:"state"`
		Digest             string          `json:"digest"`
		Definition         json.RawMessage `json:"definition"`
		AcceptedDefinition json.RawMessage `json:"accepted_definition"`
		AcceptedBy         string          `json:"accepted_by"`
	} `json:"tools"`
}

func (c *Console) pins(ctx context.Context, v Visit, server string) (*pinsView, error) {
	all, err := get[serverPins](ctx, c, v, with(api.GetServerPins, server))
	if err != nil {
		return nil, err
	}
	view := &pinsView{Pin: all.Pin, Token: v.Token(Root + "/server/accept")}
	for _, t := range all.Tools {
		if t.State != "changed" && t.State != "new" {
			view.Accepted++
			continue
		}
		p := pinnedTool{Name: t.Name, State: t.State, Digest: t.Digest, Definition: pretty(t.Definition), Before: t.AcceptedBy}
		if len(t.AcceptedDefinition) > 0 {
			p.Lines = textdiff.JSON(t.AcceptedDefinition, t.Definition)
		}
		view.Tools = append(view.Tools, p)
	}
	return view, nil
}

// accept accepts the tool definition that the user saw, identified by its digest.
func (c *Console) accept(w http.ResponseWriter, r *http.Request, v Visit) error {
	server, f := r.PostForm.Get("server"), r.PostForm
	body := callyard.AcceptRequest{Tools: []callyard.AcceptTool{{Name: f.Get("tool"), Digest: f.Get("digest")}}}
	if _, err := c.ask(r.Context(), v, with2(api.AcceptServerPins, server, body)); err != nil {
		return err
	}
	c.acted(v, "accept", "server", server, "tool", f.Get("tool"), "digest", f.Get("digest"))
	http.Redirect(w, r, at(Root+"/server", "id", server, "done", v.done("accept"))+"#pins", http.StatusSeeOther)
	return nil
}
