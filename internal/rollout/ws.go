package rollout

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/coder/websocket"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Error codes of OpenEnv.
const (
	codeJSON       = "INVALID_JSON"
	codeType       = "UNKNOWN_TYPE"
	codeValidation = "VALIDATION_ERROR"
	codeExecution  = "EXECUTION_ERROR"
	codeCapacity   = "CAPACITY_REACHED"
	codeFactory    = "FACTORY_ERROR"
	codeSession    = "SESSION_ERROR"
)

// message is a WebSocket message.
type message struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// readAhead limits the messages that are read in advance. The connection answers pings only while it
// is being read.
const readAhead = 16

// connect serves a WebSocket. Its session ends with the connection, unless it was created over HTTP.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	env, err := s.environment(r)
	if err != nil {
		return nil, err
	}
	if !s.enter() {
		return nil, errClosing()
	}
	defer s.work.Done()
	var one *session
	own := true
	if id := r.URL.Query().Get("session_id"); id != "" {
		if one, err = s.sessions.get(id, who); err != nil {
			return nil, err
		}
		own = false
	} else if one, err = s.sessions.add(who, env); err != nil {
		return nil, err
	}
	if own {
		defer s.sessions.remove(one)
	}
	defer one.join()()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled}) // the origin has been checked
	if err != nil {
		return nil, nil // Accept has written the response
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxBody)
	ctx, cancel := context.WithCancel(telemetry.CarryTrace(s.ctx, telemetry.Carried(r.Context())))
	defer cancel()
	incoming := make(chan []byte, readAhead)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		defer cancel() // cancel the step of a client that disconnected
		for {
			_, text, err := conn.Read(ctx)
			if err != nil {
				return
			}
			select {
			case incoming <- text:
			case <-ctx.Done():
				return
			}
		}
	}()
	s.converse(ctx, conn, one, incoming)
	cancel()
	<-reading
	return nil, nil
}

// converse handles messages in order until the client closes the connection.
func (s *Server) converse(ctx context.Context, conn *websocket.Conn, one *session, incoming <-chan []byte) {
	for {
		var text []byte
		select {
		case <-ctx.Done():
			return
		case text = <-incoming:
		}
		out, goOn := s.answerMessage(ctx, one, text)
		if !goOn {
			_ = conn.Close(websocket.StatusNormalClosure, "")
			return
		}
		body, err := json.Marshal(out)
		if err != nil {
			body, _ = json.Marshal(fault(codeExecution, "The answer cannot be written as JSON."))
		}
		if conn.Write(ctx, websocket.MessageText, body) != nil {
			return
		}
	}
}

// answerMessage handles one message. goOn is false for a close message.
func (s *Server) answerMessage(ctx context.Context, one *session, text []byte) (out any, goOn bool) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return fault(codeJSON, schema.AsError(unreadable("message", err)).Detail), true
	}
	one.touch()
	kind := m.Type
	var data any
	var err error
	switch m.Type {
	case "reset":
		var c choice
		if len(m.Data) > 0 {
			if err := json.Unmarshal(m.Data, &c); err != nil {
				return fault(codeValidation, schema.AsError(unreadable("data of the reset", err)).Detail), true
			}
		}
		kind = "observation"
		data, err = s.reset(ctx, one, c)
	case "step":
		kind = "observation"
		data, err = s.step(ctx, one, m.Data)
	case "state":
		data = stateOf(one)
	case "snapshot":
		data, err = snapshotOf(ctx, one)
	case "mcp":
		data = s.rpc(ctx, one, m.Data)
	case "close":
		return nil, false
	default:
		return fault(codeType, "The type of the message must be reset, step, state, snapshot, mcp or close."), true
	}
	if err != nil {
		return fault(codeOf(err, m.Type), schema.AsError(err).Detail), true
	}
	return object{"type": kind, "data": data}, true
}

func fault(code, sentence string) object {
	return object{"type": "error", "data": object{"message": sentence, "code": code}}
}

// codeOf returns the error code for a failed message of type of.
func codeOf(err error, of string) string {
	switch schema.KindOf(err) {
	case schema.KindInvalidRequest, schema.KindInvalidArguments:
		return codeValidation
	case schema.KindUnavailable, schema.KindQuota:
		return codeCapacity
	case schema.KindNotFound:
		if of == "reset" {
			return codeValidation
		}
		return codeSession
	}
	if of == "reset" {
		return codeFactory
	}
	return codeExecution
}
