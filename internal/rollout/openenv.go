package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/pkg/schema"
)

// openEnvRoutes registers the routes of OpenEnv 0.10.
func (s *Server) openEnvRoutes(both func(method, path string, f answer)) {
	both("GET", "/metadata", s.ofEnvironment(s.metadata))
	both("GET", "/schema", s.ofEnvironment(schemas))
	both("GET", "/openapi.json", s.ofEnvironment(s.openapi))
	both("GET", "/ws", s.connect)
	both("POST", "/mcp", s.mcp)
	both("POST", "/reset", s.httpReset)
	both("POST", "/step", s.httpStep)
	both("GET", "/state", s.httpState)
	both("POST", "/snapshot", s.httpSnapshot)
}

func (s *Server) metadata(env *episode.Environment) any {
	return object{"name": env.Name(), "description": env.Description, "version": s.o.Version}
}

// schemas returns the schemas of actions, observations and the state. The title of the action tells
// clients that the environment has MCP tools.
func schemas(*episode.Environment) any {
	text := object{"type": "string"}
	return object{
		"action": object{
			"title": "CallToolAction", "type": "object", "required": []string{"type"},
			"properties": object{
				"type":      object{"enum": []string{"call_tool", "list_tools", "message"}, "default": "call_tool"},
				"tool_name": text, "arguments": object{"type": "object"}, "text": text, "metadata": object{"type": "object"},
			},
		},
		"observation": object{
			"title": "CallToolObservation", "type": "object",
			"properties": object{
				"tool_name": text, "result": object{}, "error": object{"type": []string{"object", "null"}}, "prompt": text, "text": text, "tools": object{"type": "array"}, "metadata": object{"type": "object"},
			},
		},
		"state": object{
			"title": "State", "type": "object",
			"properties": object{"episode_id": object{"type": []string{"string", "null"}}, "step_count": object{"type": "integer", "minimum": 0}},
		},
	}
}

// openapi returns a short document. Clients detect the server's features by its paths.
func (s *Server) openapi(env *episode.Environment) any {
	ok := object{"responses": object{"200": object{"description": "OK"}}}
	paths := object{}
	for _, p := range []string{"/health", "/metadata", "/schema", "/state"} {
		paths[p] = object{"get": ok}
	}
	for _, p := range []string{"/reset", "/step", "/mcp", "/rewards"} {
		paths[p] = object{"post": ok}
	}
	return object{"openapi": "3.1.0", "info": object{"title": env.Name(), "description": env.Description, "version": s.o.Version}, "paths": paths}
}

// action is the action of a client in a step.
type action struct {
	Type      string          `json:"type"`
	Tool      string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"`
	Text      string          `json:"text"`
}

// Types of actions.
const (
	actionList    = "list_tools"
	actionCall    = "call_tool"
	actionMessage = "message"
)

// observed is the observation of a reset or step in the format of OpenEnv.
type observed struct {
	Observation object   `json:"observation"`
	Reward      *float64 `json:"reward"`
	Done        bool     `json:"done"`
	Metadata    object   `json:"metadata"`
}

func (s *Server) reset(ctx context.Context, one *session, c choice) (*observed, error) {
	ep, err := s.begin(ctx, one, c)
	if err != nil {
		return nil, err
	}
	task := ep.Task()
	meta := object{"episode_id": ep.ID(), "environment": ep.Environment().Name(), "task_id": task.ID, "split": task.Split, "index": task.Index, "session_id": one.id}
	return &observed{Observation: object{"prompt": ep.Prompt(), "metadata": object{}}, Metadata: meta}, nil
}

// resetNew begins an episode in a new session. After an error there is no session, because no client
// has its id.
func (s *Server) resetNew(ctx context.Context, who schema.Principal, env *episode.Environment, c choice) (*session, *observed, error) {
	one, err := s.sessions.add(who, env)
	if err != nil {
		return nil, nil, err
	}
	o, err := s.reset(ctx, one, c)
	if err != nil {
		s.sessions.remove(one)
	}
	return one, o, err
}

// step parses and runs an action. The error is of KindInvalidRequest for an invalid action.
func (s *Server) step(ctx context.Context, one *session, raw json.RawMessage) (*observed, error) {
	var a action
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, unreadable("action", err)
	}
	return s.act(ctx, one, a)
}

// act runs one action. Errors are those of step.
func (s *Server) act(ctx context.Context, one *session, a action) (*observed, error) {
	if a.Type == "" && a.Tool != "" {
		a.Type = actionCall
	}
	if a.Type != actionList && a.Type != actionCall && a.Type != actionMessage {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The type of the action must be call_tool, list_tools or message.")
	}
	if a.Type == actionCall && len(a.Arguments) > 0 && !isObject(a.Arguments) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The arguments of the action must be an object.")
	}
	ep, err := s.ensure(ctx, one)
	if err != nil {
		return nil, err
	}
	var o *episode.Observation
	switch a.Type {
	case actionList:
		st := ep.Status()
		return &observed{Observation: object{"tools": ep.Tools(), "metadata": object{}}, Done: st.Done, Metadata: object{}}, nil
	case actionCall:
		o, err = ep.Step(ctx, a.Tool, a.Arguments)
	default:
		o, err = ep.StepText(ctx, a.Text)
	}
	if err != nil {
		return nil, err
	}
	seen := object{"metadata": metadataOf(o)} // repeated here because some trainers keep only the observation
	if a.Type == actionMessage {
		seen["text"] = o.Text
	} else {
		seen["tool_name"], seen["result"], seen["error"] = a.Tool, resultOf(o), o.Error
	}
	return &observed{Observation: seen, Reward: o.Reward, Done: o.Done, Metadata: metadataOf(o)}, nil
}

func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return bytes.Equal(trimmed, []byte("null")) || len(trimmed) > 0 && trimmed[0] == '{'
}

// metadataOf returns the metadata of a step: everything but its result.
func metadataOf(o *episode.Observation) object {
	m := object{}
	if o.CallID != "" {
		m["call_id"] = o.CallID
	}
	if o.Masked {
		m["masked"], m["failure_kind"], m["retryable"] = true, o.FailureKind, o.Retryable
	}
	if o.Truncated {
		m["truncated"] = true
	}
	if o.Components != nil {
		m["components"] = o.Components
	}
	return m
}

// resultOf returns the result of a tool in the format of OpenEnv clients. data is the structured
// content or, if there is none, the text. It returns nil if there is no result.
func resultOf(o *episode.Observation) any {
	if o.Result == nil {
		return nil
	}
	var body struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if json.Unmarshal(o.Result, &body) != nil {
		return o.Result
	}
	if body.Content == nil {
		body.Content = json.RawMessage("[]")
	}
	data := body.Structured
	if len(data) == 0 {
		var texts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(body.Content, &texts) == nil && len(texts) > 0 {
			data, _ = json.Marshal(texts[0].Text) // a string always encodes
		}
	}
	return object{"content": body.Content, "structured_content": orNull(body.Structured), "is_error": o.ToolError, "data": orNull(data)}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// stateOf returns the state of the session's episode.
func stateOf(one *session) object {
	ep := one.episode()
	if ep == nil {
		return object{"episode_id": nil, "step_count": 0}
	}
	st := ep.Status()
	return object{"episode_id": ep.ID(), "step_count": st.Steps, "environment": ep.Environment().Name(), "task_id": ep.Task().ID, "done": st.Done, "masked": st.Masked}
}

// httpReset, httpStep and httpState serve OpenEnv without a WebSocket. A cookie, a header or the
// body identifies the session.
func (s *Server) httpReset(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	var q struct {
		choice
		SessionID string `json:"session_id"`
	}
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	one, err := s.sessionOf(r, who, q.SessionID)
	var o *observed
	if err == nil {
		o, err = s.reset(r.Context(), one, q.choice)
	} else {
		var env *episode.Environment
		if env, err = s.environment(r); err == nil {
			one, o, err = s.resetNew(r.Context(), who, env, q.choice)
		}
	}
	if err != nil {
		return nil, err
	}
	setCookie(w, one)
	return o, nil
}

// readOf reads the request body into q and returns its session. id points to the member of q with
// the session id.
func (s *Server) readOf(w http.ResponseWriter, r *http.Request, who schema.Principal, q any, id *string) (*session, error) {
	if err := read(w, r, q); err != nil {
		return nil, err
	}
	return s.sessionOf(r, who, *id)
}

func (s *Server) httpStep(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	var q struct {
		Action    json.RawMessage `json:"action"`
		SessionID string          `json:"session_id"`
	}
	one, err := s.readOf(w, r, who, &q, &q.SessionID)
	if err != nil {
		return nil, err
	}
	return s.step(r.Context(), one, q.Action)
}

func (s *Server) httpState(_ http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	one, err := s.sessionOf(r, who, r.URL.Query().Get("session_id"))
	if err != nil {
		return nil, err
	}
	return stateOf(one), nil
}

// httpSnapshot stores a snapshot of the session's episode. A reset can start from it.
func (s *Server) httpSnapshot(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	var q struct {
		SessionID string `json:"session_id"`
	}
	one, err := s.readOf(w, r, who, &q, &q.SessionID)
	if err != nil {
		return nil, err
	}
	return snapshotOf(r.Context(), one)
}

// snapshotOf stores a snapshot of the session's episode.
func snapshotOf(ctx context.Context, one *session) (any, error) {
	ep := one.episode()
	if ep == nil {
		return nil, schema.Errorf(schema.KindNotFound, "The session has no episode; a reset begins one.")
	}
	name, err := ep.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return object{"snapshot": name}, nil
}
