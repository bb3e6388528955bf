package console

import (
	"context"
	"net/http"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/schema"
)

// switchPages disables and enables all tools of a server.
type switchPages struct{ *Console }

// serverSwitch returns the switch that disables all tools of a server by the server's name. It
// returns nil if there is none, or if the key may not see the switches.
func (c switchPages) serverSwitch(ctx context.Context, v Visit, id string) (*callyard.Switch, error) {
	// Bypass the cache, so that a user who just disabled the server sees the change.
	list, err := get[callyard.SwitchList](ctx, c.Console, v, with0(api.ListSwitches))
	switch kind := schema.KindOf(err); {
	case err == nil:
	case kind == schema.KindForbidden || kind == schema.KindNotFound:
		return nil, nil
	default:
		return nil, err
	}
	for _, s := range list.Switches {
		if s.Wide != nil && *s.Wide && !s.Enabled && text(s.Server) == id && text(s.Set) == "" && strings.Trim(text(s.Tool), "*") == "" {
			return &s, nil
		}
	}
	return nil, nil
}

// switchServer disables or enables all tools of a server.
func (c switchPages) switchServer(w http.ResponseWriter, r *http.Request, v Visit) error {
	f := r.PostForm
	id, to := f.Get("server"), f.Get("to")
	if id == "" || strings.ContainsAny(id, "*?") || to != "on" && to != "off" {
		return schema.Errorf(schema.KindInvalidRequest, "Select a server, and whether its tools are disabled or enabled.")
	}
	body := callyard.WideSwitchRequest{Server: &id, Enabled: to == "on"}
	if to == "off" {
		body.Reason = optional(strings.TrimSpace(f.Get("reason")))
	}
	if _, err := c.ask(r.Context(), v, with(api.SwitchTools, body)); err != nil {
		return err
	}
	c.acted(v, "switch", "server", id, "to", to)
	http.Redirect(w, r, at(Root+"/server", "id", id, "done", v.done("all-"+to)), http.StatusSeeOther)
	return nil
}
