package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/schema"
)

// process is a real nats-server that syncs every write and can be killed.
type process struct {
	t        *testing.T
	bin, cfg string
	url      string
	cmd      *exec.Cmd
}

func newProcess(t *testing.T) *process {
	t.Helper()
	bin := filepath.Join(os.Getenv("CALLYARD_TEST_BIN"), "nats-server")
	if _, err := os.Stat(bin); err != nil {
		if bin, err = exec.LookPath("nats-server"); err != nil {
			t.Fatal("no nats-server: run the tests with scripts/test.sh, which builds it, or set CALLYARD_TEST_BIN")
		}
	}
	address, dir := porttest.Address(t), t.TempDir()
	cfg := filepath.Join(dir, "nats.conf")
	ok(t, os.WriteFile(cfg, fmt.Appendf(nil, "listen: %q\njetstream { store_dir: %q, sync_interval: always }\n", address, filepath.Join(dir, "data")), 0o600))
	p := &process{t: t, bin: bin, cfg: cfg, url: "nats://" + address}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.cmd = exec.Command(p.bin, "-c", p.cfg)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends it as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) connect(t *testing.T) *journal.Store {
	t.Helper()
	var c *bus.Conn
	var err error
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		if c, err = bus.Connect(t.Context(), bus.Options{URL: p.url, Name: "test", Log: slog.New(slog.DiscardHandler)}); err == nil {
			break
		}
		<-tick.C
	}
	ok(t, err)
	t.Cleanup(c.Close)
	return open(t, c, journal.Options{Lease: 10 * time.Second})
}

// Calls are accepted and run in a lane while the server is killed again and again,
// always with appends under way.
func TestNoCallIsLostOrRepeatedWhenServerIsKilled(t *testing.T) {
	const n, kills = 1500, 5
	p := newProcess(t)
	s := p.connect(t)
	id, w := begin(t, s)
	o, err := s.Claim(t.Context(), schema.DefaultTenant, id, "fd")
	ok(t, err)
	defer o.Close()
	var acked atomic.Int64
	told := make(chan struct{}, n)
	index := make([]uint64, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				at, err := w.Append(t.Context(), calls(i, 1))
				if err != nil {
					t.Errorf("call %d: %v", i, err)
					return
				}
				index[i] = at
				if err := o.Intend(t.Context(), journal.Intent(at, 1, "w")); err != nil {
					t.Errorf("intent %d: %v", i, err)
					return
				}
				r := done(i)
				r.Index = at
				if err := o.Results(t.Context(), r); err != nil {
					t.Errorf("result %d: %v", i, err)
					return
				}
				acked.Add(1)
				told <- struct{}{}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range kills {
		for range n/(2*kills) + rng.IntN(n/(3*kills)) {
			select {
			case <-told:
			case <-time.After(30 * time.Second):
				t.Fatalf("it does not go on after %d", acked.Load())
			}
		}
		p.kill()
		p.start()
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	o.Close()
	// Another process looks.
	v := p.connect(t)
	if got, err := v.Accepted(t.Context(), schema.DefaultTenant, id); err != nil || got != n {
		t.Fatalf("%d of %d calls are stored, %v", got, n, err)
	}
	at := map[string]uint64{}
	for from := uint64(0); from < n; {
		cs, err := v.Calls(t.Context(), schema.DefaultTenant, id, from, 1000)
		ok(t, err)
		if len(cs) == 0 {
			t.Fatalf("call %d is missing", from)
		}
		for _, c := range cs {
			if _, twice := at[c.CustomID]; twice {
				t.Fatalf("call %s is stored twice", c.CustomID)
			}
			at[c.CustomID] = c.Index
		}
		from += uint64(len(cs))
	}
	for i, told := range index {
		if at[fmt.Sprint(i)] != told {
			t.Errorf("call %d was told index %d and stands at %d", i, told, at[fmt.Sprint(i)])
		}
	}
	if rs := readAll(t, v, id, 1000); len(rs) != n {
		t.Errorf("%d of %d results are stored", len(rs), n)
	}
	next2, err := v.Seize(t.Context(), id, "fd-2")
	ok(t, err)
	defer next2.Close()
	if c := next2.Progress().Counts(); c.Succeeded != n || len(next2.Progress().Open()) != 0 {
		t.Errorf("%+v, open %d", c, len(next2.Progress().Open()))
	}
}

// A client sends numbered calls and resumes where the journal says, while its front
// doors and the server die under it.
func TestAnInterruptedIntakeResumesExactly(t *testing.T) {
	const n = 40_000
	p := newProcess(t)
	m := batch()
	m.ID = "resumed"
	ok(t, p.connect(t).Create(t.Context(), m))
	rng := rand.New(rand.NewPCG(3, 4))
	resumed := 0
	for sent := 0; sent < n; resumed++ {
		s := p.connect(t)
		var w *journal.Writer
		var err error
		for range 50 {
			if w, err = s.Write(t.Context(), schema.DefaultTenant, m.ID); schema.KindOf(err) != schema.KindUnavailable {
				break
			}
		}
		ok(t, err)
		sent = int(w.Next())
		ctx, crash := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			defer crash()
			for at := sent; at < n; {
				k := min(1+rng.IntN(1500), n-at)
				if rng.IntN(4) == 0 && resumed < 25 {
					go crash() // about now, with the next append under way
				}
				first, err := w.Append(ctx, calls(at, k))
				if err != nil {
					return
				}
				if first != uint64(at) {
					t.Errorf("call %d was told index %d", at, first)
					return
				}
				at += k
				sent = at
			}
		})
		<-ctx.Done()
		if rng.IntN(3) == 0 && resumed < 25 {
			p.kill()
			p.start()
		}
		wg.Wait()
		defer w.Close() // an earlier writer keeps trying, like one that hangs
		if t.Failed() {
			return
		}
	}
	s := p.connect(t)
	sealed, err := s.Seal(t.Context(), schema.DefaultTenant, m.ID)
	ok(t, err)
	if sealed.Calls != n || resumed < 5 {
		t.Errorf("%d of %d calls after %d resumptions", sealed.Calls, n, resumed)
	}
	for from := 0; from < n; {
		cs, err := s.Calls(t.Context(), schema.DefaultTenant, m.ID, uint64(from), 5000)
		ok(t, err)
		if len(cs) == 0 {
			t.Fatalf("call %d is missing", from)
		}
		for _, c := range cs {
			if c.CustomID != fmt.Sprint(from) {
				t.Fatalf("call %s stands at %d", c.CustomID, from)
			}
			from++
		}
	}
	t.Logf("resumed %d times", resumed)
}

// freeze stops the server with SIGSTOP and returns once every thread of it stands still:
// the signal alone leaves it time to answer one more request.
func (p *process) freeze() {
	p.t.Helper()
	ok(p.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	ok(p.t, err)
	if !status.Stopped() {
		p.t.Fatalf("the server was told to stop, and has %#x", status)
	}
}

// Whoever waited in vain for an append is not made to wait again by the close.
func TestCloseDoesNotWaitForATimedOutAppend(t *testing.T) {
	p := newProcess(t)
	s := p.connect(t)
	var writers []*journal.Writer
	for range 5 { // a machine that stands still for a moment delays only one or two of the closes
		_, w := begin(t, s)
		_, err := w.Append(t.Context(), calls(0, 1))
		ok(t, err)
		writers = append(writers, w)
	}
	p.freeze()
	defer func() { ok(t, p.cmd.Process.Signal(syscall.SIGCONT)) }()
	best := time.Hour
	for _, w := range writers {
		inTime, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := w.Append(inTime, calls(1, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a server that does not answer stored it: %v", err)
		}
		cancel()
		begun := time.Now()
		w.Close()
		best = min(best, time.Since(begun))
	}
	if best > 3*time.Second { // it would wait 5 s
		t.Errorf("the fastest close took %s", best)
	}
}
