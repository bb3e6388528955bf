package rollout

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// request is a JSON-RPC request of OpenEnv.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		SessionID string          `json:"session_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

// Codes of JSON-RPC.
const (
	rpcInvalidRequest = -32600
	rpcNoMethod       = -32601
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// mcp serves POST /mcp: tools over JSON-RPC, in sessions that the client opens explicitly. JSON-RPC
// errors have HTTP status 200 too.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	env, err := s.environment(r)
	if err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	var q request
	if json.Unmarshal(body, &q) != nil || q.Method == "" {
		return rpcFault(q.ID, rpcInvalidRequest, "The body is not a JSON-RPC request."), nil
	}
	if q.Method == "openenv/session/create" {
		one, err := s.sessions.add(who, env)
		if err != nil {
			return rpcFault(q.ID, rpcInternal, err.Error()), nil
		}
		return rpcResult(q.ID, object{"session_id": one.id}), nil
	}
	var one *session
	if q.Params.SessionID != "" {
		if one, err = s.sessions.get(q.Params.SessionID, who); err != nil {
			return rpcFault(q.ID, rpcInvalidParams, err.Error()), nil
		}
	}
	switch {
	case q.Method == "openenv/session/close" && one != nil:
		s.sessions.remove(one)
		return rpcResult(q.ID, object{"session_id": one.id, "closed": true}), nil
	case q.Method == mcpwire.MethodListTools && one == nil:
		tools, err := s.o.Episodes.Tools(env)
		if err != nil {
			return rpcFault(q.ID, rpcInternal, err.Error()), nil
		}
		return rpcResult(q.ID, object{"tools": tools}), nil
	case one == nil:
		return rpcFault(q.ID, rpcInvalidParams, "The request names no session_id; openenv/session/create makes one."), nil
	}
	return s.rpcOf(r.Context(), one, &q), nil
}

// rpc handles a JSON-RPC request in a session.
func (s *Server) rpc(ctx context.Context, one *session, raw json.RawMessage) object {
	var q request
	if json.Unmarshal(raw, &q) != nil || q.Method == "" {
		return rpcFault(q.ID, rpcInvalidRequest, "The data is not a JSON-RPC request.")
	}
	return s.rpcOf(ctx, one, &q)
}

func (s *Server) rpcOf(ctx context.Context, one *session, q *request) object {
	switch q.Method {
	case mcpwire.MethodListTools:
		ep, err := s.ensure(ctx, one)
		if err != nil {
			return rpcFault(q.ID, rpcInternal, schema.AsError(err).Detail)
		}
		return rpcResult(q.ID, object{"tools": ep.Tools()})
	case schema.MethodCallTool:
		o, err := s.act(ctx, one, action{Type: actionCall, Tool: q.Params.Name, Arguments: q.Params.Arguments})
		if err != nil {
			return rpcFault(q.ID, rpcInternal, schema.AsError(err).Detail)
		}
		if result := o.Observation["result"]; result != nil {
			return rpcResult(q.ID, result)
		}
		return rpcFault(q.ID, rpcInternal, messageOf(o))
	}
	return rpcFault(q.ID, rpcNoMethod, "There is no method "+q.Method+".")
}

// messageOf returns the error message of an observation without a result.
func messageOf(o *observed) string {
	if e, ok := o.Observation["error"].(*episode.StepError); ok && e != nil {
		return e.Message
	}
	return ""
}

func rpcResult(id json.RawMessage, result any) object {
	return object{"jsonrpc": "2.0", "id": orNull(id), "result": result}
}

func rpcFault(id json.RawMessage, code int, sentence string) object {
	return object{"jsonrpc": "2.0", "id": orNull(id), "error": object{"code": code, "message": sentence}}
}
