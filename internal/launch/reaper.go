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
	reaperReady   = 10 * time.Second // start time of a reaper on a busy machine
	reaperTell    = time.Second      // time for a reaper to read a line before it counts as stuck
	reaperClose   = sweepLimit + 5*time.Second
	reaperSettled = 10 * time.Second // a reaper that lived for less delays its replacement
	reaperPause   = 100 * time.Millisecond
	reaperLongest = 5 * time.Second
)

// reaper is the worker's side of the reaper process. It starts the process, sends it the process
// groups, and replaces it when it dies.
//
// The reaper reads from a pipe whose other end only this process holds. When the pipe ends, the worker
// has ended, and the reaper kills the groups.
type reaper struct {
	log     *slog.Logger
	cookie  string
	started func(pid int) // may be nil

	quit chan struct{} // closed by close
	done chan struct{} // closed when the last reaper process was reaped

	mu     sync.Mutex
	closed bool
	proc   *process // the live reaper process, or nil
	pipe   *os.File // to the reaper process
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

// add registers a group to be killed when the worker dies.
func (g *reaper) add(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[pgid] = struct{}{}
	g.tell(addLine(pgid))
}

// remove unregisters the group, before its id can be reused.
func (g *reaper) remove(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, pgid)
	g.tell(removeLine(pgid))
}

// note registers a note for RunReaper.
func (g *reaper) note(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes = append(g.notes, text)
	g.tell(noteLine(text))
}

// forget removes a note.
func (g *reaper) forget(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.notes, text); i >= 0 {
		g.notes = slices.Delete(g.notes, i, i+1)
		g.tell(removeNoteLine(text))
	}
}

// tell writes to the live reaper, if there is one; a new one receives everything. If the write fails,
// tell kills the reaper, and keep replaces it: closing the pipe of a live reaper would make it think
// that the worker died. mu is held.
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

// keep waits for the reaper process and replaces it until close is called.
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

// replace starts a reaper process. It retries until that works, or returns nil when close is called. It
// waits for pause before each try and increases it.
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

// spawn starts a reaper process, waits until it listens, and sends it everything.
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
	// It inherits nothing of the worker: no terminal or standard stream that a shell waits for, no
	// directory that might be unmounted, no secret.
	proc, err := startProcess(program, []string{"callyard-reaper"}, &os.ProcAttr{
		Dir: "/",
		Env: []string{
			reaperVariable + "=1",
			"GOMAXPROCS=1",             // it mostly sleeps; more would only use memory
			"GORACE=atexit_sleep_ms=0", // with the race detector it would otherwise wait at exit
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

	err = startReading(ready, pipe, g.cookie)
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
	if g.closed { // close was called before there was a pipe to close
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

// startReading waits for the ready word of the reaper and sends it the cookie.
func startReading(ready, pipe *os.File, cookie string) error {
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

// close ends the reaper by closing its pipe, which makes it search for remaining children once more,
// and waits for it.
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
