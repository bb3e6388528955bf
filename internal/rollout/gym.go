package rollout

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/pkg/schema"
)

// gym implements a resources server of NeMo Gym.
type gym struct{ *Server }

// routes registers the routes of a NeMo Gym resources server: seed_session, one for each tool, and
// verify. A cookie identifies the session.
func (s gym) routes(keyed func(string, answer)) {
	keyed("POST /seed_session", s.seedSession)
	keyed("POST /verify", s.verify)
	keyed("POST /{tool}", s.gymTool)
}

// orTool returns a handler for a route of the Open Reward Standard that also serves the tool of that
// name, such as create or delete, to a client of NeMo Gym. Such a client has the cookie of a session
// and, unlike one of the standard, no session header.
func (s gym) orTool(pattern string, f answer) answer {
	name, isPost := strings.CutPrefix(pattern, http.MethodPost+" /")
	if !isPost {
		return f
	}
	return func(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
		if r.Header.Get(sessionHeader) == "" {
			_, ep, err := s.episodeOf(r, who)
			if err == nil && slices.ContainsFunc(ep.Tools(), func(t episode.Tool) bool { return t.Name == name }) {
				r.SetPathValue("tool", name)
				return s.gymTool(w, r, who)
			}
		}
		return f(w, r, who)
	}
}

// seedSession begins an episode for the task that the body selects with task_id, split, index
// or seed.
func (s gym) seedSession(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	var c choice
	if err := read(w, r, &c); err != nil {
		return nil, err
	}
	env, err := s.o.Episodes.Environment(c.Environment)
	if err != nil {
		return nil, err
	}
	one, o, err := s.resetNew(r.Context(), who, env, c)
	if err != nil {
		return nil, err
	}
	setCookie(w, one)
	return o.Metadata, nil
}

// gymTool calls the tool that the path names. The body holds the arguments.
func (s gym) gymTool(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	_, ep, err := s.episodeOf(r, who)
	if err != nil {
		return nil, err
	}
	arguments, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	if len(arguments) > 0 && (!json.Valid(arguments) || !isObject(arguments)) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The body must be a JSON object.")
	}
	o, err := ep.Step(r.Context(), r.PathValue("tool"), arguments)
	if err != nil {
		return nil, err
	}
	out := metadataOf(o)
	out["result"], out["error"], out["done"] = resultOf(o), o.Error, o.Done
	return out, nil
}

// verify ends the episode, unless it has already ended, and returns the request body with the
// reward added. The reward of a masked episode is null, and mask_sample is true.
func (s gym) verify(w http.ResponseWriter, r *http.Request, who schema.Principal) (any, error) {
	out := object{}
	if err := read(w, r, &out); err != nil {
		return nil, err
	}
	if out == nil { // the body is null
		out = object{}
	}
	one, ep, err := s.episodeOf(r, who)
	if err != nil {
		return nil, err
	}
	o := ep.Last()
	if o == nil {
		if o, err = ep.Step(r.Context(), ep.Environment().FinishTool, nil); err != nil {
			return nil, err
		}
	}
	out["reward"], out["mask_sample"], out["failure_kind"], out["components"] = o.Reward, o.Masked, o.FailureKind, o.Components
	s.sessions.remove(one)
	return out, nil
}
