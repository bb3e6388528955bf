package worker

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// leasesOf returns leases of a dialed server, at most one at a time. asked, if not nil, is called
// before each answer of the server.
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
	l := openLeases(&Worker{log: slog.New(slog.DiscardHandler)}, &Served{Session: session.Config{Spec: launch.Spec{ID: "s", Type: "http", URL: h.URL}}}, nil)
	l.set.Max = 1
	t.Cleanup(l.close)
	return l
}

// taken returns the number of places in use.
func (l *leases) taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func TestProcessesThatDoNotStartAreTriedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := session.Config{Spec: launch.Spec{ID: "s"}, Attached: true}
		pool := session.Open(cfg, nil, slog.New(slog.DiscardHandler), func() {}) // it has no program that could keep a session
		var log bytes.Buffer
		l := openLeases(&Worker{log: slog.New(slog.NewTextHandler(&log, nil))}, &Served{Session: cfg}, pool)
		l.set.Warm, l.set.Max = 1, 1
		l.work.Go(l.refill)
		time.Sleep(10 * time.Minute)
		l.close()
		if err := pool.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "did not start"); n < 10 || n > 60 {
			t.Errorf("%d attempts in 10 minutes", n)
		}
	})
}

func TestSnapshotLeaseReplacesAWarmProcess(t *testing.T) {
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

func TestLeaseClosedDuringStartReleasesItsSlot(t *testing.T) {
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

func TestTheOldestSnapshotIsReplacedByTheNewest(t *testing.T) {
	l := leasesOf(t, nil)
	base := t.TempDir()
	dir := func(n int) string { return filepath.Join(base, strconv.Itoa(n)) }
	keep := func(n int) string {
		t.Helper()
		if err := os.Mkdir(dir(n), 0o700); err != nil {
			t.Fatal(err)
		}
		unused, err := l.keep(strconv.Itoa(n), dir(n))
		if err != nil {
			t.Fatal(err)
		}
		return unused
	}
	for n := range maxSnapshots {
		if unused := keep(n); unused != "" {
			t.Fatalf("after %d snapshots %s is to be removed", n+1, unused)
		}
	}
	if unused, err := l.keep("0", "again"); unused != "again" || err != nil { // it is the newest now
		t.Errorf("the same state again: %q, %v", unused, err)
	}
	if unused := keep(maxSnapshots); unused != dir(1) || l.keeps("1", dir(1)) || !l.keeps("0", dir(0)) {
		t.Errorf("%s made room, want %s", unused, dir(1))
	}
	l.stop()
	if unused, err := l.keep("late", "late"); unused != "late" || err == nil {
		t.Errorf("after the end: %q, %v", unused, err)
	}
}

func TestSessionLastsAtLeastItsConfiguredIdleTime(t *testing.T) {
	served := Served{Session: session.Config{Spec: launch.Spec{ID: "s", Type: "http", URL: "http://127.0.0.1:1"}}}
	for given, want := range map[time.Duration]time.Duration{0: dialedIdle, time.Minute: dialedIdle, time.Hour: time.Hour} {
		served.SessionIdle = given
		l := openLeases(&Worker{log: slog.New(slog.DiscardHandler)}, &served, nil)
		if l.set.Idle != want {
			t.Errorf("with %s a session lasts %s, want %s", given, l.set.Idle, want)
		}
		l.close()
	}
}

// An agent that damages its state directory has changed it. That is not a fault of the worker.
func TestStateWithoutDigestIsReportedNotAnError(t *testing.T) {
	l := leasesOf(t, nil)
	l.dialed = false
	defer func() { l.dialed = true }() // close it as a dialed one again
	one := &lease{dir: t.TempDir()}
	if err := unix.Mkfifo(filepath.Join(one.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.open["a"] = one
	defer delete(l.open, "a")
	sum, err := l.digest("a")
	if reason, unusable := strings.CutPrefix(sum, bus.UnusableState); err != nil || !unusable || !strings.Contains(reason, "neither a file") {
		t.Errorf("the digest is %q, %v", sum, err)
	}
}
