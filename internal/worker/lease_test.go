package worker

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// leasesOf are leases of a server that is dialed, at most one at once. asked, where it is not
// nil, is called before each answer of the server.
func leasesOf(t *testing.T, asked func()) *leases {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked != nil && r.Method == http.MethodPost {
			asked()
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	l := openLeases(&Worker{log: slog.New(slog.DiscardHandler)}, &Served{Session: session.Config{Spec: launch.Spec{ID: "s", Type: "http", URL: h.URL}}})
	l.set.Max = 1
	t.Cleanup(l.close)
	return l
}

// taken is the number of places that are taken.
func (l *leases) taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func TestAWarmProcessGivesItsPlaceToALeaseOfASnapshot(t *testing.T) {
	l := leasesOf(t, nil)
	one, err := l.begin(context.Background(), &bus.LeaseRequest{})
	if err != nil {
		t.Fatal(err)
	}
	l.warm, l.count = []*lease{one}, 1
	if err := l.take(&bus.LeaseRequest{ID: "a", Snapshot: "sum"}); err != nil {
		t.Fatal(err)
	}
	if n := l.taken(); n != 1 {
		t.Errorf("%d places are taken, want 1", n)
	}
	if err := l.take(&bus.LeaseRequest{ID: "b", Snapshot: "sum"}); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("one more than there may be: %v", err)
	}
}

func TestALeaseThatIsClosedWhileItsProcessStartsKeepsNoPlace(t *testing.T) {
	starts, goOn := make(chan struct{}, 100), make(chan struct{})
	l := leasesOf(t, func() {
		starts <- struct{}{}
		<-goOn
	})
	over := make(chan error, 1)
	go func() { over <- l.take(&bus.LeaseRequest{ID: "a"}) }()
	<-starts
	if err := l.take(&bus.LeaseRequest{ID: "a"}); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("the same id again: %v", err)
	}
	l.give("a")
	close(goOn)
	if err := <-over; schema.KindOf(err) != schema.KindServerFailed {
		t.Errorf("the lease that was closed: %v", err)
	}
	if n := l.taken(); n != 0 {
		t.Errorf("%d places are taken, want none", n)
	}
}
