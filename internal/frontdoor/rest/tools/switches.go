package tools

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/store/switchtable"
	"github.com/callyard/callyard/pkg/schema"
)

// maxPatternBytes is the maximum length of a pattern of names in bytes.
const maxPatternBytes = 256

// Switch is a tool, or all tools that match a pattern, and whether they are enabled.
type Switch struct {
	Server  schema.ServerID `json:"server,omitempty" doc:"A server id or, if wide is true, a pattern of server ids." example:"files"`
	Tool    string          `json:"tool,omitempty" doc:"A tool name or, if wide is true, a pattern of tool names." example:"delete_*"`
	Set     string          `json:"set,omitempty" doc:"Only tools of this set." example:"research"`
	Wide    bool            `json:"wide,omitempty" doc:"Whether server and tool are patterns. They also apply to tools that are added later."`
	Enabled bool            `json:"enabled" doc:"Whether the tools are enabled."`
	Reason  string          `json:"reason,omitempty" doc:"The reason that they are disabled; callers see it." example:"Read-only until Monday."`
	By      string          `json:"by,omitempty" doc:"The principal that changed it last." example:"ops"`
	At      time.Time       `json:"at" doc:"When it was changed last."`
}

// SwitchList is the answer to GET /tools/switches.
type SwitchList struct {
	Switches []Switch `json:"switches" nullable:"false" doc:"The switches, by server, tool and set."`
}

// WideSwitch is the answer to PATCH /tools.
type WideSwitch struct {
	Switch
	Tools int `json:"tools" doc:"The number of tools that match now." example:"3"`
}

// WideSwitchRequest is the body of PATCH /tools.
type WideSwitchRequest struct {
	Server  string `json:"server,omitempty" maxLength:"256" doc:"A pattern of servers: * stands for any characters, ? for one. Absent: every server." example:"files"`
	Tool    string `json:"tool,omitempty" maxLength:"256" doc:"A pattern of tools. Absent: every tool." example:"delete_*"`
	Set     string `json:"set,omitempty" doc:"Only tools of this set." example:"research"`
	Enabled bool   `json:"enabled" doc:"false disables the tools. true undoes what was disabled with the same server, tool and set." example:"false"`
	Reason  string `json:"reason,omitempty" maxLength:"1000" doc:"The reason that they are disabled; callers see it." example:"Read-only until Monday."`
}

// switches serves GET /tools/switches.
func (h *toolHandlers) switches(seen *catalog.Seen) SwitchList {
	list := SwitchList{Switches: make([]Switch, 0)}
	for _, sw := range h.catalog.Switches().List() {
		if sw.Wide && !seen.SeesEverything() || !sw.Wide && !seen.Would(sw.Server, sw.Tool) {
			continue // patterns and sets reveal hidden tools
		}
		list.Switches = append(list.Switches, switchOf(&sw))
	}
	return list
}

func switchOf(sw *switchtable.Switch) Switch {
	return Switch{Server: sw.Server, Tool: sw.Tool, Set: sw.Set, Wide: sw.Wide, Enabled: sw.Enabled, Reason: sw.Reason, By: sw.By, At: sw.At}
}

// readSwitch reads enabled and reason from the body and returns its members. others are the names
// of additional members.
func (h *toolHandlers) readSwitch(x *httpapi.Exchange, r *http.Request, in *SwitchRequest, others ...string) (map[string]json.RawMessage, error) {
	members, err := x.ReadMembers(r, maxSwitchBytes, h.depth, append([]string{"enabled", "reason"}, others...)...)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(
		httpapi.ReadMember(members, "enabled", true, "true or false", &in.Enabled),
		httpapi.ReadMember(members, "reason", false, "a string", &in.Reason),
	); err != nil {
		return nil, err
	}
	if len(in.Reason) > maxReasonBytes {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The member reason has %d bytes and exceeds the limit of %d bytes.", len(in.Reason), maxReasonBytes)
	}
	return members, nil
}

// switchTools serves PATCH /tools.
func (h *toolHandlers) switchTools(x *httpapi.Exchange, r *http.Request) (answer WideSwitch, err error) {
	var state SwitchRequest
	members, err := h.readSwitch(x, r, &state, "server", "tool", "set")
	if err != nil {
		return answer, err
	}
	var server, tool, set string
	for name, v := range map[string]*string{"server": &server, "tool": &tool, "set": &set} {
		if err := httpapi.ReadMember(members, name, false, "a string", v); err != nil {
			return answer, err
		}
		if len(*v) > maxPatternBytes {
			return answer, httpapi.BadMember(name, "at most %d bytes", maxPatternBytes)
		}
	}
	if server == "" && tool == "" && set == "" {
		return answer, schema.Errorf(schema.KindInvalidRequest, "The body selects every tool of every server. Send server, tool or set; {\"server\": \"*\"} means every server.")
	}
	sw, fits, err := h.catalog.Switches().Many(r.Context(), schema.ServerID(server), tool, set, state.Enabled, state.Reason, x.Principal.Name)
	if err != nil {
		return answer, err
	}
	h.log.Info("tools were enabled or disabled", "server", server, "tool", tool, "set", set, "tools", fits, "enabled", state.Enabled, "by", x.Principal.Name, "id", x.ID)
	return WideSwitch{switchOf(&sw), fits}, nil
}
