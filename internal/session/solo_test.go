package session

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

// openSolo starts a scripted server and opens a session for one call on it.
func openSolo(t *testing.T, l *launch.Launcher, o *Solo, script string) (*Single, *launch.Child, error) {
	t.Helper()
	child, err := l.Start(scripted(script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Stop(0) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	one, err := o.Open(ctx, Process{Program: child, Stdin: child.Stdin, Stdout: child.Stdout})
	return one, child, err
}

func solo(cfg Config) *Solo {
	cfg.Spec = launch.Spec{ID: "scripted"}
	return NewSolo(cfg, slog.New(slog.DiscardHandler))
}

// once runs a call to its end.
func once(t *testing.T, one *Single, req *Request) Outcome {
	t.Helper()
	over := make(chan Outcome, 1)
	one.Do(req, func(_ *Request, o Outcome) { over <- o })
	select {
	case o := <-over:
		return o
	case <-time.After(patience):
		t.Fatal("the call does not end")
		return Outcome{}
	}
}

func TestASessionForOneCallRunsOnTheGivenProgram(t *testing.T) {
	one, child, err := openSolo(t, launcher(t), solo(Config{}), "legacy")
	if err != nil {
		t.Fatal(err)
	}
	defs, digest := one.Definitions()
	if defs == nil || len(defs.Tools) == 0 || digest == "" {
		t.Errorf("the definitions are %v, %q", defs, digest)
	}
	if s := one.Snapshot(); s.State != schema.StateInitialized || s.Protocol == "" {
		t.Errorf("the snapshot is %+v", s)
	}
	if o := once(t, one, &Request{Name: "echo", Params: []byte(`{"text":"alone"}`)}); o.Err != nil || !strings.Contains(string(o.Body), "alone") {
		t.Errorf("the call ended with %s, %v", o.Body, o.Err)
	}
	one.Close()
	one.Close()
	select {
	case <-child.Done():
	default:
		t.Error("the program outlived its session")
	}
	if o := once(t, one, &Request{Name: "echo", Params: []byte(`{}`)}); o.Err == nil || o.Started || !o.Err.Retryable {
		t.Errorf("after the end a call gets %+v", o)
	}
}

func TestClosingASessionForOneCallEndsTheCall(t *testing.T) {
	one, _, err := openSolo(t, launcher(t), solo(Config{}), "legacy")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan Outcome, 1)
	one.Do(&Request{Name: "hang", Params: []byte(`{}`)}, func(_ *Request, o Outcome) { over <- o })
	one.Close()
	if o := <-over; o.Err == nil || o.Err.Kind != schema.KindOutcomeUnknown && o.Started {
		t.Errorf("the call ended with %+v", o)
	}
}

// unconfirmedChild is a killed program whose end is not confirmed before Stop, like a container of an
// engine that does not respond.
type unconfirmedChild struct {
	*launch.Child
	ended context.Context
	end   context.CancelFunc
}

func (u unconfirmedChild) Done() <-chan struct{} { return u.ended.Done() }

func (u unconfirmedChild) Err() error { return errors.New("was killed at its time limit") }

func (u unconfirmedChild) Stop(grace time.Duration) {
	u.Child.Stop(grace)
	u.end()
}

func TestCallOfAKilledProgramSaysWhyBeforeTheEndIsConfirmed(t *testing.T) {
	child, err := launcher(t).Start(scripted("legacy"))
	if err != nil {
		t.Fatal(err)
	}
	program := unconfirmedChild{Child: child}
	program.ended, program.end = context.WithCancel(context.Background())
	t.Cleanup(func() { program.Stop(0) })
	o := solo(Config{})
	o.cfg.exitWait = time.Millisecond
	one, err := o.Open(t.Context(), Process{Program: program, Stdin: child.Stdin, Stdout: child.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	over := make(chan Outcome, 1)
	one.Do(&Request{Name: "hang", Params: []byte(`{}`)}, func(_ *Request, o Outcome) { over <- o })
	if err := syscall.Kill(child.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := <-over; got.Err == nil || !strings.Contains(got.Err.Error(), "was killed at its time limit") {
		t.Errorf("the call ended with %v", got.Err)
	}
}

func TestProgramThatDoesNotBecomeReadyIsStoppedWithStderrKept(t *testing.T) {
	_, child, err := openSolo(t, launcher(t), solo(Config{}), "exits")
	if err == nil {
		t.Fatal("it became ready")
	}
	if tail := Tail(err); tail == "" || tail != child.StderrTail() {
		t.Errorf("it complained of %q, and kept is %q (%v)", child.StderrTail(), tail, err)
	}
	select {
	case <-child.Done():
	default:
		t.Error("it still runs")
	}
}

func TestTheNextSessionSkipsTheProbeOfALegacyServer(t *testing.T) {
	l, o := launcher(t), solo(Config{ProbeTimeout: 300 * time.Millisecond})
	first, _, err := openSolo(t, l, o, "ignores")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if o.guess != eraLegacy {
		t.Errorf("it is taken for era %d", o.guess)
	}
	second, _, err := openSolo(t, l, o, "ignores")
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	if o.probes != 1 {
		t.Errorf("the server was probed %d times", o.probes)
	}
}
