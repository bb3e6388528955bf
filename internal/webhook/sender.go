package webhook

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options of a sender. Store, Secrets and Log must be set; a zero value elsewhere
// means the default.
type Options struct {
	Rules
	// Store keeps the deliveries; it stays the caller's.
	Store Store
	// Secrets sign, all of them: "whsec_" and 24 to 64 bytes in base64. To rotate,
	// add the new one, let receivers take it, remove the old one.
	Secrets []string
	// Timeout bounds one attempt, from the name's resolution to the answer's end: 10 s.
	Timeout time.Duration
	// Schedule is how long to wait after each failed attempt; there is one attempt
	// more than waits. Nil means [defaultSchedule].
	Schedule []time.Duration
	// Lease is after how long without a change the attempt of another process
	// counts as dead: 20 s more than Timeout. It must be longer than Timeout.
	Lease time.Duration
	// UnderWay bounds the attempts at one time, in all (128) and for each receiver (4).
	UnderWay, UnderWayEach int
	// Waiting bounds the deliveries that wait, over all processes, in all (10,000)
	// and for each receiver (1,000); WaitingBytes those of their bodies (256 MiB,
	// 32 MiB). Processes that accept in the same instant can go over by what they
	// accept in it. As many as Waiting are kept after they were given up.
	Waiting, WaitingEach           int
	WaitingBytes, WaitingBytesEach int64
	// Roots replaces the system's root certificates. If nil, the system's are used.
	Roots *x509.CertPool
	// Resolver resolves the receivers' names; nil means the system's.
	Resolver *net.Resolver
	// Count is called for each outcome; it must not block.
	Count func(Outcome)
	Now   func() time.Time
	// Retention says of which tenants bodies are deleted, counted from when the delivery was
	// accepted, before the store drops them.
	Retention retention.Periods
	// DataKeys encrypt the bodies in the store; nil: they are not encrypted.
	DataKeys *datakey.Ring
	Log      *slog.Logger
}

func (o *Options) fill() *schema.Error {
	set(&o.Timeout, 10*time.Second)
	set(&o.Lease, o.Timeout+20*time.Second)
	set(&o.UnderWay, 128)
	set(&o.UnderWayEach, 4)
	set(&o.Waiting, 10_000)
	set(&o.WaitingEach, 1_000)
	set(&o.WaitingBytes, 256<<20)
	set(&o.WaitingBytesEach, 32<<20)
	if o.Schedule == nil {
		o.Schedule = defaultSchedule()
	}
	if o.Count == nil {
		o.Count = func(Outcome) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lease <= o.Timeout {
		return schema.Errorf(schema.KindInvalidRequest, "The lease of a webhook delivery (%v) must be longer than the timeout (%v).", o.Lease, o.Timeout)
	}
	return o.check()
}

func set[T int | int64 | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// Sender is the outbox as one process has it: it accepts deliveries and makes
// them. All methods are safe for concurrent use.
type Sender struct {
	o    Options
	id   string // of this process, as owner
	post func(context.Context, request) answer
	idle func() // closes idle connections

	wake     chan struct{}
	stop     chan struct{} // closed when closing begins
	stopped  chan struct{} // the loop has ended
	attempts sync.WaitGroup
	life     context.Context // ends the attempts that do not end in time
	kill     context.CancelFunc
	unwatch  func()
	closing  sync.Once

	mu    sync.Mutex
	queue *queue
	shut  bool
}

// Open returns a sender that resumes the deliveries of the store. ctx bounds the opening.
func Open(ctx context.Context, o Options) (*Sender, error) {
	if fault := o.fill(); fault != nil {
		return nil, fault
	}
	signer, fault := newSigner(o.Secrets)
	if fault != nil {
		return nil, fault
	}
	transport := newTransport(o.Rules, o.UnderWayEach, o.Roots, o.Resolver)
	p := &poster{rules: o.Rules, signer: signer, timeout: o.Timeout, now: o.Now, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return open(ctx, o, p.post, transport.CloseIdleConnections)
}

func open(ctx context.Context, o Options, post func(context.Context, request) answer, idle func()) (*Sender, error) {
	s := &Sender{
		o: o, id: schema.NewID("sender"), post: post, idle: idle,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		queue: newQueue(limits{
			underWay: o.UnderWay, underWayEach: o.UnderWayEach, waiting: o.Waiting, waitingEach: o.WaitingEach,
			bytes: o.WaitingBytes, bytesEach: o.WaitingBytesEach,
		}),
	}
	var err error
	if s.unwatch, err = o.Store.Watch(ctx, schema.AllTenants(), s.seen); err != nil {
		return nil, fmt.Errorf("opening the webhook outbox: %w", err)
	}
	s.life, s.kill = context.WithCancel(context.Background())
	go s.run()
	if len(o.Retention) > 0 {
		s.attempts.Go(s.forgetting)
	}
	return s, nil
}

// Message is what to send where.
type Message struct {
	// ID becomes the header webhook-id: 1 to 64 letters, digits, "_" and "-". A
	// message that is sent again with the same id while the first waits is one
	// delivery; after that, receivers can tell. Empty means a new one.
	ID  string
	URL string
	// Tenant is that of the call or batch that the event is of.
	Tenant schema.TenantID
	Event  Event
}

// bodyKind is the kind of a sealed body.
const bodyKind = "webhook"

// Send accepts a delivery: when it returns nil, the message is stored and will be
// delivered or given up with a reason. Errors are *[schema.Error]:
// [schema.KindQuota] or [schema.KindUnavailable] where too many wait,
// [schema.KindTooLarge], [schema.KindInvalidRequest] for the URL.
func (s *Sender) Send(ctx context.Context, m Message) error {
	to, fault := parseURL(m.URL, s.o.Rules)
	if fault != nil {
		return fault
	}
	body, fault := m.Event.encode()
	if fault != nil {
		return fault
	}
	if m.ID == "" {
		m.ID = schema.NewID("msg")
	}
	if !bus.PlainToken(m.ID) {
		return schema.Errorf(schema.KindInternal, "The webhook id must be 1 to 64 letters, digits, \"_\" or \"-\".")
	}
	stored, err := s.o.DataKeys.Seal(ctx, m.Tenant, body, bodyKind, m.ID)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if fault = s.fits(to.receiver, len(body)); fault != nil {
		s.mu.Unlock()
		s.o.Count(Refused)
		return fault
	}
	s.queue.reserve(to.receiver, 1, len(body))
	s.mu.Unlock()

	now := s.o.Now().UTC()
	st := state{V: stateVersion, URL: m.URL, Tenant: m.Tenant.Stored(), Receiver: to.receiver, Type: m.Event.Type, Size: len(body), Created: now, Next: now, By: s.id}
	revision, err := s.o.Store.Create(ctx, st.Tenant, m.ID, st.encode(), stored)
	s.mu.Lock()
	s.queue.reserve(to.receiver, -1, len(body))
	s.mu.Unlock()
	switch {
	case errors.Is(err, bus.ErrConflict):
		return nil // accepted before
	case err != nil:
		return &schema.Error{Kind: schema.KindUnavailable, Retryable: true, RetryAfter: time.Second, Detail: "The webhook could not be stored: " + err.Error() + "; send it again with the same id."}
	}
	s.keep(m.ID, st, revision)
	return nil
}

// Check says whether a callback_url may be promised now: [CheckURL], and room
// for one more delivery to its receiver.
func (s *Sender) Check(raw string) *schema.Error {
	to, fault := parseURL(raw, s.o.Rules)
	if fault != nil {
		return fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fits(to.receiver, 0)
}

func (s *Sender) fits(receiver string, size int) *schema.Error {
	if s.shut {
		return &schema.Error{Kind: schema.KindUnavailable, Retryable: true, RetryAfter: time.Second, Detail: "This process is stopping and accepts no more webhooks: try again."}
	}
	return s.queue.space(receiver, size)
}

// seen takes in what the watch tells.
func (s *Sender) seen(id string, stored []byte, revision uint64) {
	if len(stored) == 0 {
		s.mu.Lock()
		s.queue.drop(id, revision, true)
		s.mu.Unlock()
		return
	}
	st, err := decodeState(stored)
	if err != nil {
		s.o.Log.Error("a webhook delivery cannot be read; it is left to newer processes", "delivery", id, "error", err)
		return
	}
	s.keep(id, st, revision)
}

// keep takes in what is stored of a delivery.
func (s *Sender) keep(id string, st state, revision uint64) {
	s.mu.Lock()
	s.queue.put(id, st, revision, s.turn(st))
	s.mu.Unlock()
	s.nudge()
}

// turn returns when this process may make the next attempt. Who made the last one
// goes first; the others come when it does not, and not all at once.
func (s *Sender) turn(st state) time.Time {
	switch st.Owner {
	case "":
	case s.id: // an attempt of ours that we could not write down
		return s.o.Now()
	default:
		return s.o.Now().Add(s.o.Lease)
	}
	if st.By == "" || st.By == s.id {
		return st.Next
	}
	stagger := s.o.Lease / 15
	return st.Next.Add(stagger + rand.N(stagger))
}

func (s *Sender) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run begins attempts when they are due.
func (s *Sender) run() {
	defer close(s.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
		timer.Reset(s.begin())
	}
}

// begin starts what is due and returns for how long nothing else is.
func (s *Sender) begin() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.shut {
		r, wait := s.queue.next(s.o.Now())
		if r == nil {
			return wait
		}
		s.attempts.Add(1)
		go s.attempt(r, r.state, r.revision)
	}
	return forever
}

// Close takes no more and waits for the attempts under way; those that have not ended when
// ctx ends are aborted and left to other processes, which begin at once. It returns after
// the last one, a few seconds later at most.
func (s *Sender) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.shut = true
		s.mu.Unlock()
		close(s.stop)
	})
	<-s.stopped
	ended := make(chan struct{})
	go func() {
		s.attempts.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		s.kill()
		<-ended
		err = fmt.Errorf("closing the webhook outbox: attempts were interrupted: %w", ctx.Err())
	}
	s.kill()
	s.unwatch()
	s.idle()
	return err
}
