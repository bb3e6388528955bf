package rollout

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	sessionIdle  = 15 * time.Minute // time without a request after which a session ends, unless limits.idle is longer
	sessionSweep = 10 * time.Second
	maxSessions  = 100_000
)

// session is the state of a client between requests: an episode, and the responses to its calls.
type session struct {
	id  string
	who schema.Principal
	env *episode.Environment // default environment of new episodes

	beginning sync.Mutex // held while an episode begins

	mu      sync.Mutex
	ep      *episode.Episode
	used    time.Time
	joined  int // number of open connections
	pending map[string]*pendingCall
	closed  bool
}

// sessions holds the sessions of clients, by id.
type sessions struct {
	mu     sync.Mutex
	known  map[string]*session
	closed bool
}

// add creates a session, whose episodes take the place and the processes of others. The error is of
// KindForbidden for a principal that may call no tool, and of KindUnavailable if there are too many
// sessions, or the server is closed.
func (t *sessions) add(who schema.Principal, env *episode.Environment) (*session, error) {
	if !who.Has(scope.CallTools) {
		return nil, schema.Errorf(schema.KindForbidden, "Your credential does not have the scope %s, so it can begin no episode.", scope.CallTools)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosing()
	}
	if len(t.known) >= maxSessions {
		return nil, schema.Errorf(schema.KindUnavailable, "There are %d sessions, the most that there may be.", maxSessions)
	}
	s := &session{id: rand.Text(), who: who, env: env, used: time.Now(), pending: make(map[string]*pendingCall)}
	t.known[s.id] = s
	return s, nil
}

// get returns the principal's session. The error is of KindNotFound.
func (t *sessions) get(id string, who schema.Principal) (*session, error) {
	t.mu.Lock()
	s := t.known[id]
	t.mu.Unlock()
	if s == nil || !s.who.Same(&who) {
		return nil, schema.Errorf(schema.KindNotFound, "There is no such session; it may have ended.")
	}
	s.touch()
	return s, nil
}

// remove ends a session.
func (t *sessions) remove(s *session) {
	t.mu.Lock()
	delete(t.known, s.id)
	t.mu.Unlock()
	s.close()
}

func (t *sessions) all() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.known))
}

func (t *sessions) closeAll() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range t.all() {
		closing.Go(func() { t.remove(s) })
	}
	closing.Wait()
}

// sweep ends idle sessions until the server closes.
func (s *Server) sweep() {
	tick := time.NewTicker(sessionSweep)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			var closing sync.WaitGroup // in parallel, because a worker may not answer
			for _, one := range s.sessions.all() {
				if one.idle(now) {
					closing.Go(func() { s.sessions.remove(one) })
				}
			}
			closing.Wait()
		}
	}
}

// idle reports whether the session has had no request for too long. A step that still runs is a
// request.
func (s *session) idle(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, last := max(sessionIdle, s.env.Limits.Idle), now.Sub(s.used)
	if s.ep != nil {
		limit, last = max(sessionIdle, s.ep.Environment().Limits.Idle), min(last, s.ep.IdleTime(now))
	}
	return s.joined == 0 && last > limit
}

func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	if s.ep != nil {
		s.ep.Touch()
	}
}

// join counts an open connection of the session until leave is called.
func (s *session) join() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.joined--
		s.used = time.Now()
	}
}

// episode returns the episode of the session, or nil if there is none.
func (s *session) episode() *episode.Episode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ep
}

// close ends the session and its episode.
func (s *session) close() {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.endEpisode()
}

// endEpisode ends the episode of the session, if there is one.
func (s *session) endEpisode() {
	s.mu.Lock()
	ep := s.ep
	s.ep = nil
	s.mu.Unlock()
	if ep != nil {
		ep.Close()
	}
}

// choice selects the task of an episode.
type choice struct {
	Environment string `json:"environment"`
	TaskID      string `json:"task_id"`
	Split       string `json:"split"`
	Index       *int   `json:"index"`
	Seed        *int64 `json:"seed"`
	EpisodeID   string `json:"episode_id"`
	Snapshot    string `json:"snapshot"`
}

// task returns the selected task. Without an index, it depends only on the seed: seed modulo the
// number of tasks of the split, or the first task if there is no seed. With a snapshot, the task
// must be named unless there is only one.
func (c *choice) task(env *episode.Environment) (*episode.Task, error) {
	if c.TaskID != "" {
		return env.TaskByID(c.TaskID)
	}
	split := cmp.Or(c.Split, env.Splits()[0].Name)
	if c.Index != nil {
		return env.Task(split, *c.Index)
	}
	list, err := env.Tasks(split)
	if err != nil {
		return nil, err
	}
	if c.Snapshot != "" && (len(list) > 1 || c.Split == "" && len(env.Splits()) > 1) {
		// A snapshot does not record its task. Another task would have the wrong prompt and reward.
		return nil, schema.Errorf(schema.KindInvalidRequest, "A reset with a snapshot must name its task; send task_id, or split and index.")
	}
	at := 0
	if c.Seed != nil {
		at = int(((*c.Seed % int64(len(list))) + int64(len(list))) % int64(len(list)))
	}
	return list[at], nil
}

// maxEpisodeID limits the length of an id that a client chooses, as in OpenEnv.
const maxEpisodeID = 255

// begin ends the session's episode and begins another one.
func (s *Server) begin(ctx context.Context, one *session, c choice) (*episode.Episode, error) {
	one.beginning.Lock()
	defer one.beginning.Unlock()
	return s.beginHeld(ctx, one, c)
}

func (s *Server) beginHeld(ctx context.Context, one *session, c choice) (*episode.Episode, error) {
	env := one.env
	if c.Environment != "" {
		var err error
		if env, err = s.o.Episodes.Environment(c.Environment); err != nil {
			return nil, err
		}
	}
	task, err := c.task(env)
	if err != nil {
		return nil, err
	}
	if len(c.EpisodeID) > maxEpisodeID {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The episode_id has more than %d characters.", maxEpisodeID)
	}
	one.mu.Lock()
	old, closed := one.ep, one.closed
	one.ep, one.pending = nil, make(map[string]*pendingCall)
	one.mu.Unlock()
	if old != nil {
		old.Close()
	}
	if closed {
		return nil, schema.Errorf(schema.KindNotFound, "The session has ended.")
	}
	b := episode.Begin{Task: task, ID: c.EpisodeID, Snapshot: c.Snapshot, Principal: one.who}
	if c.Seed != nil {
		b.Seed = *c.Seed
	}
	ep, err := s.o.Episodes.Begin(ctx, env, b)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.ep, one.used = ep, time.Now()
	return ep, nil
}

// ensure returns the session's episode. If there is none, it begins one.
func (s *Server) ensure(ctx context.Context, one *session) (*episode.Episode, error) {
	one.beginning.Lock()
	defer one.beginning.Unlock()
	if ep := one.episode(); ep != nil {
		return ep, nil
	}
	return s.beginHeld(ctx, one, choice{})
}

// Names of the cookie and the header that identify a session.
const (
	sessionCookie = "env_session"
	sessionHeader = "X-Session-ID"
)

// sessionOf returns the session of a request. id is the session id in the body, or "".
func (s *Server) sessionOf(r *http.Request, who schema.Principal, id string) (*session, error) {
	if id == "" {
		id = r.Header.Get(sessionHeader)
	}
	if c, err := r.Cookie(sessionCookie); id == "" && err == nil {
		id = c.Value
	}
	if id == "" {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The request names no session: send the cookie or the %s header.", sessionHeader)
	}
	return s.sessions.get(id, who)
}

// episodeOf returns the session of a request and its episode.
func (s *Server) episodeOf(r *http.Request, who schema.Principal) (*session, *episode.Episode, error) {
	one, err := s.sessionOf(r, who, "")
	if err != nil {
		return nil, nil, err
	}
	if ep := one.episode(); ep != nil {
		return one, ep, nil
	}
	return nil, nil, schema.Errorf(schema.KindNotFound, "The session has no episode; POST /create begins one.")
}

func setCookie(w http.ResponseWriter, one *session) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // trainers come over plain HTTP, mostly on loopback
		Name: sessionCookie, Value: one.id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}
