package rollout

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// ors implements the Open Reward Standard.
type ors struct{ *Server }

// routes registers the routes of the standard.
func (s ors) routes(open, keyed func(string, answer), both func(method, path string, f answer)) {
	open("GET /list_environments", s.listEnvironments)
	both("GET", "/splits", s.ofEnvironment(func(env *episode.Environment) any { return env.Splits() }))
	both("POST", "/tasks", s.listTasks)
	both("POST", "/num_tasks", s.countTasks)
	both("POST", "/task", s.oneTask)
	both("POST", "/task_range", s.taskRange)
	both("GET", "/tools", s.tools)
	both("GET", "/task_tools", s.tools)
	both("GET", "/prompt", s.prompt)
	both("POST", "/call", s.call)
	keyed("POST /create_session", s.createSession)
	keyed("POST /create", s.create)
	keyed("POST /ping", s.ping)
	keyed("POST /delete", s.deleteEpisode)
	keyed("POST /delete_session", s.deleteSession)
}

func (s ors) listEnvironments(http.ResponseWriter, *http.Request, schema.Principal) (any, error) {
	names := []string{}
	for _, e := range s.o.Episodes.Environments() {
		names = append(names, e.Name())
	}
	return names, nil
}

// ask is the body of requests for tasks.
type ask struct {
	Split string `json:"split"`
	Index *int   `json:"index"`
	Start *int   `json:"start"`
	Stop  *int   `json:"stop"`
}

func (s ors) asked(w http.ResponseWriter, r *http.Request) (*episode.Environment, ask, []*episode.Task, error) {
	var q ask
	env, err := s.environment(r)
	if err == nil {
		err = read(w, r, &q)
	}
	if err != nil {
		return nil, q, nil, err
	}
	list, err := env.Tasks(q.Split)
	return env, q, list, err
}

func (s ors) listTasks(w http.ResponseWriter, r *http.Request, _ schema.Principal) (any, error) {
	env, _, list, err := s.asked(w, r)
	if err != nil {
		return nil, err
	}
	return object{"tasks": public(list), "env_name": env.Name()}, nil
}

func public(list []*episode.Task) []any {
	out := []any{}
	for _, t := range list {
		out = append(out, t.Public())
	}
	return out
}

func (s ors) countTasks(w http.ResponseWriter, r *http.Request, _ schema.Principal) (any, error) {
	_, _, list, err := s.asked(w, r)
	if err != nil {
		return nil, err
	}
	return object{"num_tasks": len(list)}, nil
}

func (s ors) oneTask(w http.ResponseWriter, r *http.Request, _ schema.Principal) (any, error) {
	env, q, _, err := s.asked(w, r)
	if err != nil {
		return nil, err
	}
	if q.Index == nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The request has no index.")
	}
	t, err := env.Task(q.Split, *q.Index)
	if err != nil {
		return nil, err
	}
	return object{"task": t.Public(), "env_name": env.Name()}, nil
}

// taskRange returns the tasks from start up to stop, excluding stop, like a slice of a Python list.
func (s ors) taskRange(w http.ResponseWriter, r *http.Request, _ schema.Principal) (any, error) {
	env, q, list, err := s.asked(w, r)
	if err != nil {
		return nil, err
	}
	at := func(p *int, or int) int {
		if p == nil {
			return or
		}
		i := *p
		if i < 0 {
			i += len(list)
		}
		return min(max(i, 0), len(list))
	}
	from, to := at(q.Start, 0), at(q.Stop, len(list))
	return object{"tasks": public(list[from:max(from, to)]), "env_name": env.Name()}, nil
}

// tools returns the tools of the session's episode or, without one, of the environment.
func (s ors) tools(_ http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	if r.Header.Get(sessionHeader) != "" {
		one, err := s.sessions.get(r.Header.Get(sessionHeader), who)
		if err != nil {
			return nil, err
		}
		if ep := one.episode(); ep != nil {
			return object{"tools": ep.Tools()}, nil
		}
	}
	env, err := s.environment(r)
	if err != nil {
		return nil, err
	}
	tools, err := s.o.Episodes.Tools(env)
	if err != nil {
		return nil, err
	}
	return object{"tools": tools}, nil
}

// createSession creates a session. The response is a stream whose first event has the id.
func (s ors) createSession(w http.ResponseWriter, _ *http.Request, who schema.Principal) (any, error) {
	env, err := s.o.Episodes.Environment("")
	if err != nil {
		return nil, err
	}
	one, err := s.sessions.add(who, env)
	if err != nil {
		return nil, err
	}
	out := stream(w)
	defer out.End()
	if out.Event("task_id", "", []byte(one.id)) != nil || out.Event("end", "") != nil {
		s.sessions.remove(one) // the client did not get the id and creates another session
	}
	return nil, nil
}

// create begins the episode of a session.
func (s ors) create(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	var q struct {
		EnvName string  `json:"env_name"`
		Split   *string `json:"split"`
		Index   *int    `json:"index"`
		Task    *struct {
			ID          string `json:"id"`
			Environment string `json:"environment"`
		} `json:"task_spec"`
		Seed     *int64 `json:"seed"`
		Snapshot string `json:"snapshot"`
	}
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	if (q.Task == nil) == (q.Split == nil || q.Index == nil) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "Send either task_spec, or split and index.")
	}
	one, err := s.sessionOf(r, who, "")
	if err != nil {
		return nil, err
	}
	c := choice{Environment: q.EnvName, Index: q.Index, Seed: q.Seed, Snapshot: q.Snapshot}
	if q.Task != nil {
		if c.TaskID = q.Task.ID; c.TaskID == "" {
			return nil, schema.Errorf(schema.KindInvalidRequest, "The task_spec has no id; send it as /tasks gave it.")
		}
	} else {
		c.Split = *q.Split
	}
	if _, err := s.begin(r.Context(), one, c); err != nil {
		return nil, err
	}
	return object{"sid": one.id}, nil
}

func (s ors) prompt(_ http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	_, ep, err := s.episodeOf(r, who)
	if err != nil {
		return nil, err
	}
	return []any{object{"type": "text", "text": ep.Prompt(), "detail": nil}}, nil
}

func (s ors) ping(_ http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	if _, err := s.sessionOf(r, who, ""); err != nil {
		return nil, err
	}
	return object{"status": "ok"}, nil
}

func (s ors) deleteEpisode(_ http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	one, err := s.sessionOf(r, who, "")
	if err != nil {
		return nil, err
	}
	one.endEpisode()
	return object{"sid": one.id}, nil
}

func (s ors) deleteSession(_ http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	one, err := s.sessionOf(r, who, "")
	if err != nil {
		return nil, err
	}
	s.sessions.remove(one)
	return object{"sid": one.id}, nil
}

const (
	chunkBytes = 4096
	heartbeat  = 10 * time.Second
	maxPending = 1000 // limits the responses that a session keeps
)

// pendingCall is a started call. It is kept for clients that request its response again.
type pendingCall struct {
	done chan struct{}
	body []byte // set before done is closed
}

// call serves POST /{env}/call. The client gets the task id before anything runs, so a call without
// a task id has not run before.
func (s ors) call(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	var q struct {
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"`
		TaskID string          `json:"task_id"`
	}
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	if len(q.Input) > 0 && !isObject(q.Input) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The input must be an object.")
	}
	one, ep, err := s.episodeOf(r, who)
	if err != nil {
		return nil, err
	}
	id, begun := q.TaskID, (*pendingCall)(nil)
	if id != "" {
		one.mu.Lock()
		begun = one.pending[id]
		one.mu.Unlock()
		if begun == nil {
			return nil, schema.Errorf(schema.KindNotFound, "The session has no call with that task_id.")
		}
	} else {
		id = schema.NewID("task")
	}
	out := stream(w)
	defer out.End()
	if out.Event("task_id", "", []byte(id)) != nil {
		return nil, nil // the client did not get the id and sends the call again
	}
	if begun == nil {
		if begun = s.beginCall(telemetry.CarryTrace(s.ctx, telemetry.Carried(r.Context())), one, ep, id, q.Name, q.Input); begun == nil {
			return nil, nil
		}
	}
	s.await(r.Context(), out, begun)
	return nil, nil
}

// beginCall starts a call, which continues if its client disconnects. It returns nil if the episode
// of the session or the server has ended. ctx ends with the server.
func (s ors) beginCall(ctx context.Context, one *session, ep *episode.Episode, id, name string, input json.RawMessage) *pendingCall {
	if !s.enter() {
		return nil
	}
	p := &pendingCall{done: make(chan struct{})}
	one.mu.Lock()
	if one.ep != ep {
		one.mu.Unlock()
		s.work.Done()
		return nil
	}
	if len(one.pending) >= maxPending {
		one.pending = make(map[string]*pendingCall)
	}
	one.pending[id] = p
	one.mu.Unlock()
	go func() {
		defer s.work.Done()
		defer close(p.done)
		o, err := ep.Step(ctx, name, withoutNulls(input, ep.Tools(), name))
		p.body = outputOf(o, err)
	}()
	return p
}

// await sends the response of a call in chunks. It sends heartbeats while the call runs.
func (s ors) await(ctx context.Context, out *sse.Writer, p *pendingCall) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for waiting := true; waiting; {
		select {
		case <-p.done:
			waiting = false
		case <-beat.C:
			if out.Beat() != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
	body := p.body
	for len(body) > chunkBytes {
		n := chunkBytes
		for n > 0 && body[n]&0xc0 == 0x80 { // do not split a UTF-8 character
			n--
		}
		if out.Event("chunk", "", body[:n]) != nil {
			return
		}
		body = body[n:]
	}
	_ = out.Event("end", "", body) // a client that disconnected requests it again
}

// stream starts a response of server-sent events.
func stream(w http.ResponseWriter) *sse.Writer {
	out := &sse.Writer{W: w, Within: func(int) time.Duration { return time.Minute }}
	out.Begin()
	return out
}

// outputOf returns the response of a call in the format of the Open Reward Standard.
func outputOf(o *episode.Observation, err error) []byte {
	var v any
	if err != nil {
		v = object{"ok": false, "error": schema.AsError(err).Detail}
	} else {
		meta := any(nil)
		if m := metadataOf(o); len(m) > 0 {
			if o.Error != nil {
				m["error_type"] = o.Error.Type
			}
			meta = m
		}
		worth := o.Reward
		if !o.Done {
			worth = nil // clients use the last reward that is not null, even if the episode is masked later
		}
		v = object{"ok": true, "output": object{"blocks": blocksOf(o), "metadata": meta, "reward": worth, "finished": o.Done}}
	}
	body, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"ok":false,"error":"The result cannot be written as JSON."}`)
	}
	return body
}

// blocksOf returns the content blocks of a result.
func blocksOf(o *episode.Observation) []any {
	text := func(t string) object { return object{"type": "text", "text": t, "detail": nil} }
	if o.Error != nil {
		return []any{text(o.Error.Message)}
	}
	var body struct {
		Content []json.RawMessage `json:"content"`
	}
	if json.Unmarshal(o.Result, &body) != nil {
		return []any{text(string(o.Result))}
	}
	blocks := []any{}
	for _, raw := range body.Content {
		var c struct{ Type, Text, Data, MimeType string }
		switch err := json.Unmarshal(raw, &c); {
		case err == nil && c.Type == "text":
			blocks = append(blocks, text(c.Text))
		case err == nil && c.Type == "image":
			blocks = append(blocks, object{"type": "image", "data": c.Data, "mimeType": c.MimeType, "detail": nil})
		default:
			blocks = append(blocks, text(string(raw)))
		}
	}
	return blocks
}
