package launch

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	reaperReady   = 10 * time.Second // for a reaper to come up, on a machine that is busy starting
	reaperTell    = time.Second      // for a reaper to take a line; one that does not is stuck
	reaperClose   = sweepLimit + 5*time.Second
	reaperSettled = 10 * time.Second // a reaper that lived less makes its successor wait
	reaperPause   = 100 * time.Millisecond
	reaperLongest = 5 * time.Second
)

// reaper is the worker's end of the reaper process: it starts it, tells it which
// groups there are, and starts another one when it dies.
//
// The reaper reads from a pipe of which only this process holds the other end.
// When that pipe ends the worker is gone, and the reaper does its work.
type reaper struct {
	log     *slog.Logger
	cookie  string
	started func(pid int) // may be nil

	quit chan struct{} // closed by close
	done chan struct{} // closed when the last reaper was reaped

	mu     sync.Mutex
	closed bool
	proc   *process // the live reaper; nil while there is none
	pipe   *os.File // to it
	groups map[int]struct{}
	notes  []string
}

func startReaper(log *slog.Logger, cookie string, started func(pid int)) (*reaper, error) {
	g := &reaper{
		log: log, cookie: cookie, started: started,
		quit: make(chan struct{}), done: make(chan struct{}),
		groups: make(map[int]struct{}),
	}
	proc, err := g.spawn()
	if err != nil {
		return nil, err
	}
	go g.keep(proc)
	return g, nil
}

// add has the group killed when the worker dies.
func (g *reaper) add(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[pgid] = struct{}{}
	g.tell(addLine(pgid))
}

// remove takes the group back, before its id can mean another group.
func (g *reaper) remove(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, pgid)
	g.tell(removeLine(pgid))
}

// note has the note handed to what RunReaper was given.
func (g *reaper) note(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes = append(g.notes, text)
	g.tell(noteLine(text))
}

// forget takes a note back.
func (g *reaper) forget(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.notes, text); i >= 0 {
		g.notes = slices.Delete(g.notes, i, i+1)
		g.tell(unnoteLine(text))
	}
}

// tell writes to the live reaper, if there is one; the next one is told all. A
// reaper that cannot be told is killed, for keep to replace: its pipe must not be
// closed while it lives, or it would take the worker for dead. mu is held.
func (g *reaper) tell(lines string) {
	if g.pipe == nil {
		return
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(reaperTell))
	if _, err := io.WriteString(g.pipe, lines); err != nil {
		g.log.Warn("the reaper of child processes does not respond; replacing it", "error", err)
		_ = g.proc.Kill()
	}
}

// keep waits for the reaper and replaces it until close.
func (g *reaper) keep(proc *process) {
	defer close(g.done)
	pause := time.Duration(0)
	for {
		born := time.Now()
		proc.awaitExit()
		state, _ := proc.Wait()
		g.mu.Lock()
		g.pipe.Close()
		g.proc, g.pipe = nil, nil
		closed := g.closed
		g.mu.Unlock()
		if closed {
			return
		}
		g.log.Warn("the reaper of child processes died; starting another", "how", state.String())
		if time.Since(born) > reaperSettled {
			pause = 0
		}
		if proc = g.replace(&pause); proc == nil {
			return
		}
	}
}

// replace starts a reaper, trying until that works or close is called; then it
// returns nil. It waits for pause before each try and lengthens it.
func (g *reaper) replace(pause *time.Duration) *process {
	for {
		select {
		case <-g.quit:
			return nil
		case <-time.After(*pause):
		}
		*pause = min(max(2**pause, reaperPause), reaperLongest)
		proc, err := g.spawn()
		if err == nil {
			return proc
		}
		g.log.Error("no reaper for child processes: they would outlive a killed worker", "error", err)
	}
}

// spawn starts a reaper process, waits until it listens, and tells it all.
func (g *reaper) spawn() (*process, error) {
	program, err := ownProgram()
	if err != nil {
		return nil, err
	}
	input, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	ready, output, err := os.Pipe()
	if err != nil {
		pipe.Close()
		return nil, err
	}
	defer ready.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		pipe.Close()
		output.Close()
		return nil, err
	}
	// It gets nothing of the worker's: no terminal or standard stream that a shell
	// waits for, no directory that could be unmounted, no secret.
	proc, err := startProcess(program, []string{"callyard-reaper"}, &os.ProcAttr{
		Dir: "/",
		Env: []string{
			reaperVariable + "=1",
			"GOMAXPROCS=1",             // it mostly sleeps; more would only cost memory
			"GORACE=atexit_sleep_ms=0", // built with the race detector it would dawdle at its end
		},
		Files: []*os.File{input, output, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	null.Close()
	output.Close()
	if err != nil {
		pipe.Close()
		return nil, err
	}

	err = greet(ready, pipe, g.cookie)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		_ = proc.Kill()
		proc.awaitExit()
		_, _ = proc.Wait()
		pipe.Close()
		return nil, err
	}
	g.proc, g.pipe = proc, pipe
	if g.closed { // close came in between and had no pipe to close
		pipe.Close()
		return proc, nil
	}
	for pgid := range g.groups {
		g.tell(addLine(pgid))
	}
	for _, text := range g.notes {
		g.tell(noteLine(text))
	}
	if g.started != nil {
		g.started(proc.Pid)
	}
	return proc, nil
}

// greet waits until the reaper says that it is one, and tells it the cookie.
func greet(ready, pipe *os.File, cookie string) error {
	_ = ready.SetReadDeadline(time.Now().Add(reaperReady))
	var word [len(readyWord)]byte
	if _, err := io.ReadFull(ready, word[:]); err != nil {
		return fmt.Errorf("the restarted program did not become a reaper; does main call launch.RunReaper first? (%w)", err)
	}
	if string(word[:]) != readyWord {
		return errors.New("the restarted program did not become a reaper; main must call launch.RunReaper first")
	}
	_, err := io.WriteString(pipe, cookieLine(cookie))
	return err
}

// close ends the reaper by ending its pipe, which makes it look for what is left
// of the children once more, and waits for it.
func (g *reaper) close() error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.quit)
		if g.pipe != nil {
			g.pipe.Close()
		}
	}
	g.mu.Unlock()
	timer := time.NewTimer(reaperClose)
	defer timer.Stop()
	select {
	case <-g.done:
		return nil
	case <-timer.C:
	}
	g.mu.Lock()
	if g.proc != nil {
		_ = g.proc.Kill()
	}
	g.mu.Unlock()
	<-g.done
	return errors.New("it did not end within " + strconv.Itoa(int(reaperClose/time.Second)) + " seconds and was killed")
}
