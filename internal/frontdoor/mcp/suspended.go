package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

// A server of the legacy era asks during a call and keeps its session open until it gets an
// answer. A client of the modern era gets the question as the answer to its request, and replies
// with another request. A suspended call is such a call between two requests: it keeps
// running at the worker, and this front door keeps it until the client replies.

const (
	// awayTime is the time that a client has to send its answers. The time limit of the call keeps
	// running in the meantime, and is usually shorter.
	awayTime = 10 * time.Minute
	// maxAway limits the calls of one principal that wait for their clients, maxSuspended all calls
	// of this front door.
	maxAway      = 32
	maxSuspended = 1000
)

// suspendedCalls holds the calls of clients of the modern era whose servers may ask for input.
type suspendedCalls struct {
	frontDoor string
	wait      *sync.WaitGroup // for the goroutines of the calls
	seed      string
	requests  *requests

	mu   sync.Mutex
	by   map[string]*suspendedCall
	away map[string]int // number of calls that wait for their clients, by principal
	over bool
}

func newSuspendedCalls(frontDoor string, wait *sync.WaitGroup) *suspendedCalls {
	return &suspendedCalls{frontDoor: frontDoor, wait: wait, seed: rand.Text(), by: make(map[string]*suspendedCall), away: make(map[string]int)}
}

// suspendedCall is a call whose server may ask for input.
type suspendedCall struct {
	id            string
	principal     string
	mount         string
	call          *schema.Call
	arguments     string // digest
	cancel        context.CancelFunc
	notifications chan notification
	asked         chan struct{} // signaled if there are questions that were not sent to the client
	done          chan struct{} // closed when end is set
	end           ended
	isAway        bool // counted in suspendedCalls.away; guarded by suspendedCalls.mu

	mu       sync.Mutex
	next     int
	open     []*openRequest
	attended bool        // a request waits for the call
	away     *time.Timer // runs while no request waits
	closed   bool        // accepts no more answers
}

// openRequest is a request of the server that waits for an answer.
type openRequest struct {
	id       string
	serverID string // of the server's message
	request  []byte
	answer   func([]byte)
	sent     bool // to the client
}

// mayBeSuspended reports whether the server of a call can ask during the call and the client can
// be asked in the modern way.
func (r *requests) mayBeSuspended(x *exchange, to target) bool {
	return x.modern && askable(x.meta.capabilities) != nil && r.speaksUnasked(to)
}

// conversation returns the name of the conversation between a client of the modern era and a
// server. Calls of one principal with the same capabilities for input share one, so that workers
// need not open a session for each.
func (s *suspendedCalls) conversation(x *exchange, server schema.ServerID) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %s", x.principal.Identity(), server, askable(x.meta.capabilities)) // a hash never returns an error
	return s.seed + "-" + strconv.FormatUint(h.Sum64(), 36)
}

// conversation returns the name of the conversation in which the client of a tool call receives
// messages of its server. It is "" if the server is of the modern era or may not ask.
func (r *requests) conversation(x *exchange, to target) string {
	switch {
	case x.session != nil && r.speaksUnasked(to):
		return x.session.askedAs()
	case x.session != nil:
		return x.session.name
	case r.speaksUnasked(to):
		return r.suspended.conversation(x, to.server)
	}
	return ""
}

// speaksUnasked reports whether the server of a tool sends requests to its callers by itself, as
// servers of the legacy era do, and the operator allows it.
func (r *requests) speaksUnasked(to target) bool {
	s, err := r.catalog.Server(to.server)
	return err == nil && s.Asks && s.Protocol != "" && !mcpwire.IsModern(s.Protocol)
}

// add registers a call. It returns nil if there are too many.
func (s *suspendedCalls) add(x *exchange, call *schema.Call) *suspendedCall {
	t := &suspendedCall{
		id: rand.Text(), principal: x.principal.Identity(), mount: x.mount, call: call, arguments: schema.Digest(call.Arguments), notifications: make(chan notification, progressWaiting),
		asked: make(chan struct{}, 1), done: make(chan struct{}), attended: true,
	}
	call.Session = s.conversation(x, call.Server)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.by) >= maxSuspended {
		return nil
	}
	s.by[t.id] = t
	return t
}

// suspend records that the client of a call leaves with a question. It returns false if the
// principal has reached its limit.
func (s *suspendedCalls) suspend(t *suspendedCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away[t.principal] >= maxAway {
		return false
	}
	s.away[t.principal]++
	t.isAway = true
	return true
}

// returns records that a client is back, or that its call no longer waits for it.
func (s *suspendedCalls) returns(t *suspendedCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.isAway {
		return
	}
	t.isAway = false
	if s.away[t.principal]--; s.away[t.principal] <= 0 {
		delete(s.away, t.principal)
	}
}

// find returns the suspended call that a request continues. It returns nil if the caller has none
// with this ID or the request differs from the original call.
func (s *suspendedCalls) find(x *exchange, id string, call *schema.Call) *suspendedCall {
	s.mu.Lock()
	t := s.by[id]
	s.mu.Unlock()
	if t == nil || t.principal != x.principal.Identity() || t.mount != x.mount || t.call.Server != call.Server || t.call.Tool != call.Tool || t.arguments != schema.Digest(call.Arguments) {
		return nil
	}
	return t
}

// forget removes the call.
func (s *suspendedCalls) forget(t *suspendedCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, t.id)
}

// leave gives up the calls that wait for their clients, because this front door will have stopped
// when they reply. It accepts no new calls.
func (s *suspendedCalls) leave() {
	s.mu.Lock()
	s.over = true
	all := slices.Collect(maps.Values(s.by))
	s.mu.Unlock()
	for _, t := range all {
		t.shut()
	}
}

// end cancels the remaining calls.
func (s *suspendedCalls) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.by {
		t.cancel()
	}
}

// run runs a call whose server may ask for input during the call.
func (s *suspendedCalls) run(ctx context.Context, x *exchange, call *schema.Call) ([]byte, *fault) {
	t := s.add(x, call)
	if t == nil {
		e := schema.Errorf(schema.KindUnavailable, "This front door reached its limit of %d running calls whose servers can send requests to their clients; the call did not start. Send it again later.", maxSuspended).RetryableAfter(time.Second)
		return x.toolFault(e)
	}
	x.setCall(call.ID)
	x.note(call)
	if x.meta.token != nil && x.res.streams {
		call.Progress = func(params []byte) { sse.Offer(t.notifications, notification{params: params}) }
	}
	call.Hear = t.onMessage(x.meta.capabilities, x.logLevel() != "")
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	s.wait.Go(func() {
		defer cancel()
		end := s.requests.submitGuarded(running, call)
		s.returns(t)
		t.shut()
		t.end = end
		close(t.done)
	})
	return s.attend(ctx, x, t)
}

// onMessage returns a handler for the server's messages during the call. logs enables forwarding
// of log messages.
func (t *suspendedCall) onMessage(capabilities []byte, logs bool) func(message []byte, answer func([]byte)) {
	capabilities = slices.Clone(capabilities)
	return func(message []byte, answer func([]byte)) {
		method, params := serverMessage(message)
		switch {
		case answer == nil && method == mcpwire.NotifyCancelled:
			t.canceled(get(params, "requestId"))
			return
		case answer == nil:
			if logs && method == mcpwire.NotifyMessage {
				sse.Offer(t.notifications, notification{method, params})
			}
			return
		}
		if !answersTo(capabilities, method) {
			answer(refusal(mcpwire.CodeMethodNotFound, notDeclared))
			return
		}
		request := appendMember([]byte{'{'}, "method", quote(method))
		request = append(appendMember(request, "params", params), '}')
		t.mu.Lock()
		why := ""
		switch {
		case t.closed:
			why = notAnswered
		case len(t.open) >= maxOpenRequests:
			why = tooMany
		default:
			t.next++
			t.open = append(t.open, &openRequest{id: strconv.Itoa(t.next), serverID: string(get(message, "id")), request: request, answer: answer})
		}
		t.mu.Unlock()
		if why != "" {
			answer(refusal(mcpwire.CodeInternal, why))
			return
		}
		select {
		case t.asked <- struct{}{}:
		default:
		}
	}
}

// canceled removes a question whose answer the server no longer needs.
func (t *suspendedCall) canceled(id []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = slices.DeleteFunc(t.open, func(q *openRequest) bool { return q.serverID != "" && q.serverID == string(id) })
}

// shut refuses all open questions and all later ones.
func (t *suspendedCall) shut() {
	t.mu.Lock()
	t.closed = true
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for _, q := range open {
		q.answer(refusal(mcpwire.CodeInternal, notAnswered))
	}
}

// attend waits for the end of a call or for questions of its server.
func (s *suspendedCalls) attend(ctx context.Context, x *exchange, t *suspendedCall) ([]byte, *fault) {
	for {
		select {
		case w := <-t.notifications:
			if x.wants(w) && x.sendNotification(w) != nil {
				t.cancel() // the client disconnected
			}
		case <-t.asked:
			if question := s.park(t); question != nil {
				return question, nil
			}
		case <-t.done:
			s.forget(t)
			for len(t.notifications) > 0 {
				if w := <-t.notifications; x.wants(w) {
					_ = x.sendNotification(w) // send queued notifications before the result
				}
			}
			return s.requests.finish(ctx, x, t.call, t.end)
		case <-ctx.Done():
			t.cancel()
			<-t.done
			s.forget(t)
			return nil, x.faultOf(schema.Errorf(schema.KindCanceled, "The caller disconnected, and the call was canceled.").WithCall(t.call.ID))
		}
	}
}

// wants reports whether the request that waits for a call asked for a notification.
func (x *exchange) wants(w notification) bool {
	if w.method == mcpwire.NotifyMessage {
		return x.wantsLog(w.params)
	}
	return x.meta.token != nil
}

// park suspends a call until its client is back, and returns the result with the questions. It
// returns nil if no question is open.
func (s *suspendedCalls) park(t *suspendedCall) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) == 0 {
		return nil
	}
	if !s.suspend(t) {
		for _, q := range t.open {
			q.answer(refusal(mcpwire.CodeInternal, tooMany))
		}
		t.open = nil
		return nil
	}
	b := []byte(`{"resultType":"input_required","inputRequests":`)
	requests := []byte{'{'}
	for _, q := range t.open {
		q.sent = true
		requests = appendMember(requests, q.id, q.request)
	}
	b = append(append(b, requests...), `},"requestState":`...)
	t.attended = false
	t.away = time.AfterFunc(awayTime, func() {
		t.mu.Lock()
		attended := t.attended
		t.mu.Unlock()
		if !attended {
			s.returns(t)
			t.cancel()
			t.shut()
			s.forget(t)
		}
	})
	return append(appendQuoted(b, requestState{Call: t.call.ID, Suspended: t.id, Door: s.frontDoor}.String()), '}')
}

// resume continues a suspended call whose client has replied.
func (s *suspendedCalls) resume(ctx context.Context, x *exchange, call *schema.Call, state requestState, responses []byte) ([]byte, *fault) {
	t := s.find(x, state.Suspended, call)
	if t == nil {
		text := "The session in which the server asked has ended: the answer came too late, or the front door was restarted. Call the tool again from the beginning; it may have done part of its work."
		if state.Door != s.frontDoor {
			text = "The server asked in a session of another front door, and only that front door can forward the answer; this request reached a different one or came after a restart. Call the tool again from the beginning; it may have done part of its work."
		}
		return x.toolFault(schema.Errorf(schema.KindExpired, "%s", text).WithCall(state.Call))
	}
	x.setCall(t.call.ID)
	answers := membersOf(responses, "")
	t.mu.Lock()
	if t.attended {
		t.mu.Unlock()
		return x.toolFault(schema.Errorf(schema.KindConflict, "Another request with this requestState is being answered.").WithCall(t.call.ID))
	}
	t.attended = true
	t.away.Stop()
	s.returns(t)
	var left, given []*openRequest
	for _, q := range t.open {
		if answers[q.id] != nil && q.sent {
			given = append(given, q)
		} else {
			left = append(left, q)
		}
	}
	t.open = left
	t.mu.Unlock()
	for _, q := range given {
		q.answer(answered(answers[q.id]))
	}
	if len(left) > 0 {
		select {
		case t.asked <- struct{}{}:
		default:
		}
	}
	return s.attend(ctx, x, t)
}

// answered wraps a client's answer as a JSON-RPC result.
func answered(response json.RawMessage) []byte {
	return append(appendMember([]byte{'{'}, "result", response), '}')
}
