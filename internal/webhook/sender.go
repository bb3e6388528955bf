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

// Options are the options of a sender. Store, Secrets and Log are required. Any other zero value
// means the default.
type Options struct {
	Rules
	// Store keeps the deliveries. The caller closes it.
	Store Store
	// Secrets sign each request, all of them: "whsec_" and 24 to 64 bytes in base64. To rotate, add
	// the new secret, wait until the receivers use it, then remove the old one.
	Secrets []string
	// Timeout limits one attempt, from name resolution to the end of the response. The default is
	// 10 s.
	Timeout time.Duration
	// Schedule holds the waits after failed attempts. There is one more attempt than waits. If nil,
	// it is [defaultSchedule].
	Schedule []time.Duration
	// Lease is the time without a change after which the attempt of another process counts as dead.
	// It must exceed Timeout. The default is Timeout plus 20 s.
	Lease time.Duration
	// UnderWay limits concurrent attempts in total (128) and per receiver (4).
	UnderWay, UnderWayEach int
	// Waiting limits the waiting deliveries of all processes, in total (10,000) and per receiver
	// of each tenant (1,000). WaitingBytes limits the size of their bodies (256 MiB, 32 MiB).
	// Processes that accept deliveries at the same moment can exceed the limits by those deliveries.
	// As many dead deliveries as Waiting are kept.
	Waiting, WaitingEach           int
	WaitingBytes, WaitingBytesEach int64
	// Roots replaces the system's root certificates. If nil, the system's are used.
	Roots *x509.CertPool
	// Resolver resolves the names of receivers. If nil, the system's resolver is used.
	Resolver *net.Resolver
	// Count is called for each outcome; it must not block.
	Count func(Outcome)
	Now   func() time.Time
	// Retention returns the periods after which bodies of a tenant are deleted before the store drops
	// them, counted from the acceptance of the delivery.
	Retention retention.Periods
	// DataKeys encrypt the stored bodies. If nil, bodies are not encrypted.
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

// Sender is the outbox in one process. It accepts deliveries and makes them. All methods are safe
// for concurrent use.
type Sender struct {
	o    Options
	id   string // of this process, as the owner of attempts
	post func(context.Context, request) answer
	idle func() // closes idle connections

	wake     chan struct{}
	stop     chan struct{} // closed when Close starts
	stopped  chan struct{} // the loop has ended
	attempts sync.WaitGroup
	life     context.Context // ends attempts that take too long during Close
	kill     context.CancelFunc
	unwatch  func()
	closing  sync.Once

	mu    sync.Mutex
	queue *queue
	shut  bool

	storing faults
}

// Open returns a sender that resumes the stored deliveries. ctx limits the opening.
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

// Message is an event and its receiver.
type Message struct {
	// ID becomes the header webhook-id: 1 to 64 letters, digits, "_" and "-". Sending the same id
	// again while the first message waits makes one delivery; after that, receivers can detect the
	// duplicate. If empty, a new id is generated.
	ID  string
	URL string
	// Tenant is the tenant of the call or batch.
	Tenant schema.TenantID
	Event  Event
}

// ErrNotStored is the cause of the error of [Sender.Send] if the outbox cannot be written. The delivery
// may be stored nevertheless; send it again with the same id.
var ErrNotStored = errors.New("the outbox cannot be written")

// bodyKind is the kind of a sealed body.
const bodyKind = "webhook"

// Send accepts a delivery. When it returns nil, the message is stored and will be delivered, or given
// up with a reason. Errors are *[schema.Error]: [schema.KindQuota] or [schema.KindUnavailable] if too
// many deliveries wait, [schema.KindTooLarge], or [schema.KindInvalidRequest] for the URL.
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
	if fault = s.checkSize(to.receiver, m.Tenant, len(body)); fault != nil {
		s.mu.Unlock()
		s.o.Count(Refused)
		return fault
	}
	s.queue.reserve(to.receiver, m.Tenant, 1, len(body))
	s.mu.Unlock()

	now := s.o.Now().UTC()
	st := state{V: stateVersion, URL: m.URL, Tenant: m.Tenant.Stored(), Receiver: to.receiver, Type: m.Event.Type, Size: len(body), Created: now, Next: now, By: s.id}
	revision, err := s.o.Store.Create(ctx, st.Tenant, m.ID, st.encode(), stored)
	s.mu.Lock()
	s.queue.reserve(to.receiver, m.Tenant, -1, len(body))
	s.mu.Unlock()
	switch {
	case errors.Is(err, bus.ErrConflict):
		return nil // already accepted
	case err != nil:
		return schema.Errorf(schema.KindUnavailable, "The webhook could not be stored (%w); send it again with the same id.", fmt.Errorf("%w: %w", ErrNotStored, err)).RetryableAfter(time.Second)
	}
	s.keep(m.ID, st, revision)
	return nil
}

// Check returns nil if a callback_url of the tenant can be accepted now: [CheckURL], and space for one
// more delivery to its receiver.
func (s *Sender) Check(raw string, tenant schema.TenantID) *schema.Error {
	to, fault := parseURL(raw, s.o.Rules)
	if fault != nil {
		return fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkSize(to.receiver, tenant, 0)
}

func (s *Sender) checkSize(receiver string, tenant schema.TenantID, size int) *schema.Error {
	if s.shut {
		return &schema.Error{Kind: schema.KindUnavailable, Retryable: true, RetryAfter: time.Second, Detail: "This process is stopping and accepts no more webhooks: try again."}
	}
	return s.queue.space(receiver, tenant, size)
}

// seen applies an update of the watch.
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

// keep applies the stored state of a delivery.
func (s *Sender) keep(id string, st state, revision uint64) {
	s.mu.Lock()
	s.queue.put(id, st, revision, s.turn(st))
	s.mu.Unlock()
	s.nudge()
}

// turn returns the time from which this process may make the next attempt. The process that made
// the last attempt goes first. If it does not, the others follow at different times.
func (s *Sender) turn(st state) time.Time {
	switch st.Owner {
	case "":
	case s.id: // an attempt of ours whose outcome could not be stored
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

// run starts attempts when they are due.
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

// begin starts due attempts and returns the time until the next one is due.
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

// Close stops accepting deliveries and waits for attempts in progress. When ctx ends, it aborts the
// remaining ones, and other processes take them over at once. It returns after the last attempt, at
// most a few seconds later.
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
