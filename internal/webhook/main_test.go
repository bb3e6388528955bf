package webhook

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secretA = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	secretB = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// memory is a store for one process or several in one.
type memory struct {
	mu      sync.Mutex
	last    uint64
	rows    map[string]memoryRow
	watches map[int]func(string, []byte, uint64)
}

type memoryRow struct {
	tenant      schema.TenantID
	state, body []byte
	revision    uint64
}

func newMemory() *memory {
	return &memory{rows: map[string]memoryRow{}, watches: map[int]func(string, []byte, uint64){}}
}

// change stores under the lock and tells the watches after it.
func (m *memory) change(id string, f func(r memoryRow, ok bool) (memoryRow, error)) (uint64, error) {
	m.mu.Lock()
	r, ok := m.rows[id]
	r, err := f(r, ok && len(r.state) > 0)
	if err != nil {
		m.mu.Unlock()
		return 0, err
	}
	m.last++
	r.revision = m.last
	m.rows[id] = r
	var tell []func(string, []byte, uint64)
	for _, f := range m.watches {
		tell = append(tell, f)
	}
	m.mu.Unlock()
	for _, f := range tell {
		f(id, r.state, r.revision)
	}
	return r.revision, nil
}

func (m *memory) Create(_ context.Context, tenant schema.TenantID, id string, state, body []byte) (uint64, error) {
	return m.change(id, func(_ memoryRow, ok bool) (memoryRow, error) {
		if ok {
			return memoryRow{}, bus.ErrConflict
		}
		return memoryRow{tenant: tenant, state: state, body: body}, nil
	})
}

func (m *memory) Replace(_ context.Context, tenant schema.TenantID, id string, state []byte, revision uint64) (uint64, error) {
	return m.change(id, func(r memoryRow, _ bool) (memoryRow, error) {
		if r.revision != revision || !r.tenant.Is(tenant) {
			return r, bus.ErrConflict
		}
		r.state = state
		return r, nil
	})
}

func (m *memory) Remove(_ context.Context, tenant schema.TenantID, id string, revision uint64) (uint64, error) {
	return m.change(id, func(r memoryRow, _ bool) (memoryRow, error) {
		if r.revision != revision || !r.tenant.Is(tenant) {
			return r, bus.ErrConflict
		}
		return memoryRow{}, nil
	})
}

func (m *memory) Get(_ context.Context, of schema.Tenants, id string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[id]
	if len(r.state) == 0 || !of.Include(r.tenant) {
		return nil, 0, bus.ErrNotFound
	}
	return r.state, r.revision, nil
}

func (m *memory) Body(_ context.Context, tenant schema.TenantID, id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.rows[id]; len(r.body) > 0 && r.tenant.Is(tenant) {
		return r.body, nil
	}
	return nil, bus.ErrNotFound
}

func (m *memory) Forget(_ context.Context, tenant schema.TenantID, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[id]
	if len(r.state) == 0 || !r.tenant.Is(tenant) {
		return bus.ErrNotFound
	}
	r.body = nil
	m.rows[id] = r
	return nil
}

func (m *memory) Watch(_ context.Context, _ schema.Tenants, f func(string, []byte, uint64)) (func(), error) {
	m.mu.Lock()
	n := len(m.watches) + 1
	m.watches[n] = f
	for id, r := range m.rows {
		defer f(id, r.state, r.revision)
	}
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watches, n)
	}, nil
}

// stored reads a delivery as it is stored.
func (m *memory) stored(t *testing.T, id string) state {
	t.Helper()
	b, _, err := m.Get(t.Context(), schema.AllTenants(), id)
	if err != nil {
		t.Fatalf("delivery %s: %v", id, err)
	}
	st, err := decodeState(b)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// counter counts outcomes and tells of each.
type counter struct {
	mu   sync.Mutex
	n    map[Outcome]int
	each chan Outcome
}

func newCounter() *counter {
	return &counter{n: map[Outcome]int{}, each: make(chan Outcome, 10_000)}
}

func (c *counter) count(o Outcome) {
	c.mu.Lock()
	c.n[o]++
	c.mu.Unlock()
	c.each <- o
}

func (c *counter) of(o Outcome) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[o]
}

// wait waits until an outcome has come about.
func (c *counter) wait(t *testing.T, want Outcome) {
	t.Helper()
	for {
		switch got := within(t, "the outcome "+string(want), c.each); {
		case got == want:
			return
		case got == Dead:
			t.Fatalf("a delivery was given up; the outcome %s did not come about", want)
		}
	}
}

func event(n int) Event {
	return Event{Type: "call.succeeded", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Data: []byte(`{"id":"call_` + strconv.Itoa(n) + `"}`)}
}

// local returns options that may send to loopback.
func local(store Store) Options {
	return Options{Rules: Rules{AllowPrivate: true}, Store: store, Secrets: []string{secretA}, Log: slog.New(slog.DiscardHandler),
		Schedule: []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}}
}

// start opens a sender until the test ends.
func start(t *testing.T, o Options) *Sender {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s
}

func shut(t *testing.T, s *Sender) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func send(t *testing.T, s *Sender, id, url string) {
	t.Helper()
	if err := s.Send(t.Context(), Message{ID: id, URL: url, Event: event(1)}); err != nil {
		t.Fatal(err)
	}
}

// receivedRequest is a request that a receiver had.
type receivedRequest struct {
	header http.Header
	body   []byte
}

// serve runs a receiver until the test ends; answer is called for request n,
// from 1. Close of the returned server may be called before.
func serve(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) (*httptest.Server, chan receivedRequest) {
	t.Helper()
	requests := make(chan receivedRequest, 10_000)
	var mu sync.Mutex
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		n++
		m := n
		mu.Unlock()
		requests <- receivedRequest{r.Header.Clone(), body}
		answer(m, w, r)
	}))
	t.Cleanup(srv.Close)
	return srv, requests
}

func status(codes ...int) func(int, http.ResponseWriter, *http.Request) {
	return func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(codes[min(n, len(codes))-1]) }
}

// within waits for a signal of the thing under test.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("%s did not come about", what)
		panic("unreachable")
	}
}

// only returns the one delivery of a list.
func only(t *testing.T, list []Delivery) Delivery {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("%d deliveries, want one", len(list))
	}
	return list[0]
}

func checkContains(t *testing.T, sentence, part string) {
	t.Helper()
	if !strings.Contains(sentence, part) {
		t.Errorf("%q does not say %q", sentence, part)
	}
}
