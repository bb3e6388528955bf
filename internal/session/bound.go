package session

import (
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// MetaSession is the member of _meta that tells an attached program the name under which
	// it can keep state for a holder of a [Binding], and a program with [Config].Tells the
	// session of the request. A caller's own is not passed on.
	MetaSession = "dev.callyard/session"
	// MetaClock and MetaSeed tell it the time, in RFC 3339, and the seed, in decimal, of the
	// holder, where it has these.
	MetaClock = "dev.callyard/clock"
	MetaSeed  = "dev.callyard/seed"
	// NotifySessionEnded tells the program that a name will not come again; its params have
	// the member session.
	NotifySessionEnded = "notifications/callyard/session_ended"
)

// Binding binds a holder to one of the programs that are attached to a pool, for as long as the
// program stays. It is safe for concurrent use. Close ends it.
type Binding struct {
	pool *Pool
	s    *session
	name string
	once sync.Once
}

// Bind binds a holder to the program with the fewest holders. name is told to the program with
// each call; no two holders may have the same. The error is a *schema.Error of KindUnavailable
// where no program is attached.
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

// Do is [Pool.Do] at the program of the binding. Once that has left, calls end at once, and did
// not start; they are not retryable, because no other program has the state.
func (b *Binding) Do(req *Request, done func(*Request, Outcome)) *Running {
	req.bound = b
	return b.pool.Do(req, done)
}

// appendTold appends what a program is told with a call: the name under which it can keep state,
// and the time and seed of the call.
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

// Close tells the program that the session has ended. It may be called more than once.
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

// left is how a call ends whose program is gone before it was sent.
func (b *Binding) left() Outcome {
	return Outcome{Err: schema.Errorf(schema.KindServerFailed, "The program of the server %q that had the state of this session has left; the call did not start.", b.pool.cfg.Spec.ID)}
}

// free says whether a session takes another call now. The caller holds p.mu.
func free(p *Pool, s *session) bool { return s.load < s.places && !p.rereads(s) }

// pickFor returns the session for a call, nil where it must wait or its program is gone. The
// caller holds p.mu.
func pickFor(p *Pool, req *Request) (s *session, gone bool) {
	if req.bound == nil {
		return p.pick(), false
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

// enqueue has a call wait for a place, in front of the others or behind them. The caller holds
// p.mu.
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

// nextCall returns the waiting call that can be sent now, and where; nil where there is none. Of
// several it is the one that came first, whether it is bound or not: otherwise those of either
// kind could wait for ever while the others keep coming. The caller holds p.mu.
func nextCall(p *Pool) (*session, *Running) {
	var at *session
	var from *[]*Running
	first := func(s *session, queue *[]*Running) {
		if *queue = withoutEnded(*queue); len(*queue) > 0 && (from == nil || (*queue)[0].came < (*from)[0].came) {
			at, from = s, queue
		}
	}
	if s := p.pick(); s != nil {
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

// behind says whether a call must wait, although s is free for it, because others came first. A
// bound one passes those that wait for other programs. The caller holds p.mu.
func behind(p *Pool, s *session, req *Request) bool {
	if req.bound == nil {
		return p.waiting > 0
	}
	p.queue, s.bound = withoutEnded(p.queue), withoutEnded(s.bound)
	return len(p.queue) > 0 || len(s.bound) > 0
}

// withoutEnded is a queue without the calls in front that have ended while they waited.
func withoutEnded(queue []*Running) []*Running {
	for len(queue) > 0 && queue[0].ended.Load() {
		queue[0], queue = nil, queue[1:]
	}
	return queue
}

// takeBound returns the calls that wait for a session, which nobody will send any more. The
// caller holds p.mu, and ends them with [Binding.left] once it has let go of that.
func (s *session) takeBound() []*Running {
	bound := s.bound
	s.bound = nil
	return bound
}
