package session

import (
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// MetaSession is the member of _meta with a session name. An attached program can keep state
	// under this name for the holder of a [Binding]. A program with [Config].Tells gets the session
	// of the request. A value from the caller is not passed on.
	MetaSession = "dev.callyard/session"
	// MetaClock and MetaSeed are the members of _meta with the time, in RFC 3339, and the seed,
	// in decimal, of the holder, if it has them.
	MetaClock = "dev.callyard/clock"
	MetaSeed  = "dev.callyard/seed"
	// NotifySessionEnded notifies the program that a session name will not be used again. Its params
	// have the member session.
	NotifySessionEnded = "notifications/callyard/session_ended"
)

// Binding binds a holder to one of the programs that are attached to a pool, for as long as the
// program is attached. It is safe for concurrent use. Close ends it.
type Binding struct {
	pool *Pool
	s    *session
	name string
	once sync.Once
}

// Bind binds a holder to the program with the fewest holders. The program receives name with
// each call, so no two holders may have the same name. The error is a *schema.Error of
// KindUnavailable if no program is attached.
func Bind(p *Pool, name string) (*Binding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *session
	for _, s := range p.live {
		if best == nil || s.holders < best.holders {
			best = s
		}
	}
	if best == nil || p.closing {
		return nil, schema.Errorf(schema.KindUnavailable, "The server %q has no program that could keep a session now.", p.cfg.Spec.ID).RetryableAfter(time.Second)
	}
	best.holders++
	return &Binding{pool: p, s: best, name: name}, nil
}

// Do is [Pool.Do] on the program of the binding. Once the program has left, calls end at once
// without having started. They are not retryable, because no other program has the state.
func (b *Binding) Do(req *Request, done func(*Request, Outcome)) *Running {
	req.bound = b
	return b.pool.Do(req, done)
}

// appendTold appends the _meta members that a program gets with a call: the name under which it
// can keep state, and the time and seed of the call.
func appendTold(dst []byte, name string, req *Request) []byte {
	dst = rawjson.AppendText(append(dst, `"`+MetaSession+`":`...), name)
	if req.Clock != "" {
		dst = rawjson.AppendText(append(dst, `,"`+MetaClock+`":`...), req.Clock)
	}
	if req.Seed != "" {
		dst = rawjson.AppendText(append(dst, `,"`+MetaSeed+`":`...), req.Seed)
	}
	return dst
}

// Close notifies the program that the session has ended. It may be called more than once.
func (b *Binding) Close() {
	b.once.Do(func() {
		b.pool.mu.Lock()
		b.s.holders--
		b.pool.mu.Unlock()
		select {
		case <-b.s.dead:
		default:
			b.s.link.post(append(rawjson.AppendText([]byte(`{"jsonrpc":"2.0","method":"`+NotifySessionEnded+`","params":{"session":`), b.name), "}}"...))
		}
	})
}

// outcomeOfLeft returns the outcome of a call whose program left before the call was sent.
func (b *Binding) outcomeOfLeft() Outcome {
	return Outcome{Err: schema.Errorf(schema.KindServerFailed, "The program of the server %q that had the state of this session has left; the call did not start.", b.pool.cfg.Spec.ID)}
}

// free reports whether a session can take another call now. The caller holds p.mu.
func free(p *Pool, s *session) bool { return s.load < s.places && !p.rereads(s) }

// pickFor returns the session for a call, or nil if the call must wait or its program has left
// (gone). The caller holds p.mu.
func pickFor(p *Pool, req *Request) (s *session, gone bool) {
	if req.bound == nil {
		return p.leastLoaded(), false
	}
	s = req.bound.s
	switch {
	case !slices.Contains(p.live, s):
		return nil, true
	case !free(p, s):
		return nil, false
	}
	return s, false
}

// enqueue adds a call to the front or the back of its queue. The caller holds p.mu.
func enqueue(p *Pool, r *Running, front bool) {
	queue := &p.queue
	if r.req.bound != nil {
		queue = &r.req.bound.s.bound
	}
	if front {
		*queue = append([]*Running{r}, *queue...)
	} else {
		*queue = append(*queue, r)
	}
	p.waiting++
}

// nextCall returns the next waiting call that can be sent, and its session; nil if there is none.
// It picks the oldest call, bound or not, so that neither kind starves while calls of the other
// kind keep coming. The caller holds p.mu.
func nextCall(p *Pool) (*session, *Running) {
	var at *session
	var from *[]*Running
	first := func(s *session, queue *[]*Running) {
		if *queue = withoutEnded(*queue); len(*queue) > 0 && (from == nil || (*queue)[0].came < (*from)[0].came) {
			at, from = s, queue
		}
	}
	if s := p.leastLoaded(); s != nil {
		first(s, &p.queue)
	}
	for _, s := range p.live {
		if len(s.bound) > 0 && free(p, s) {
			first(s, &s.bound)
		}
	}
	if from == nil {
		return nil, nil
	}
	r := (*from)[0]
	(*from)[0], *from = nil, (*from)[1:]
	return at, r
}

// mustQueue reports whether a call must wait behind older calls although s is free. A bound call
// passes those that wait for other programs. The caller holds p.mu.
func mustQueue(p *Pool, s *session, req *Request) bool {
	if req.bound == nil {
		return p.waiting > 0
	}
	p.queue, s.bound = withoutEnded(p.queue), withoutEnded(s.bound)
	return len(p.queue) > 0 || len(s.bound) > 0
}

// withoutEnded returns the queue without the calls at its front that ended while they waited.
func withoutEnded(queue []*Running) []*Running {
	for len(queue) > 0 && queue[0].ended.Load() {
		queue[0], queue = nil, queue[1:]
	}
	return queue
}

// takeBound removes and returns the calls that wait for a session which takes no more calls. The
// caller holds p.mu, and ends the calls with [Binding.outcomeOfLeft] after it has released p.mu.
func (s *session) takeBound() []*Running {
	bound := s.bound
	s.bound = nil
	return bound
}
