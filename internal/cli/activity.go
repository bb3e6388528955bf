package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// activity shows the progress of a command on stderr. At a terminal it redraws one line with a
// bar. Elsewhere it writes a line for each activity if plain is set, otherwise nothing. All other
// output to stderr, such as the log, must be written through it, so that it appears above the line.
type activity struct {
	out   screen
	plain bool // write a line for each activity if there is no terminal
	alike bool // the steps take about the same time, so the remaining time can be estimated
	now   func() time.Time

	mu          sync.Mutex
	text        string // "" shows no line
	done, total int
	began       time.Time
	row         progressLine

	stop func() // of the redraws
}

func newActivity(out screen) *activity {
	a := &activity{out: out, row: progressLine{s: out}, now: time.Now, stop: func() {}}
	if out.terminal {
		a.stop = repeat(drawEvery, func(time.Time) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.draw()
		})
	}
	return a
}

// repeat calls run at the interval until stop is called, which waits for a call that runs. stop may
// be called more than once.
func repeat(every time.Duration, run func(now time.Time)) (stop func()) {
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				run(now)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(end)
		running.Wait()
	})
}

// step sets the current activity and the number of completed steps. A total of 0 means unknown.
// An empty text removes the line.
func (a *activity) step(done, total int, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began.IsZero() {
		a.began = a.now()
	}
	if a.plain && !a.out.terminal && text != "" && text != a.text {
		_ = a.out.text(oneLine(text) + "\n") // best effort: not part of the output
	}
	a.text, a.done, a.total = text, done, total
	a.draw()
}

// end removes the line permanently. It may be called more than once.
func (a *activity) end() {
	a.stop()
	a.step(0, 0, "")
}

// above calls write to print other output above the progress line.
func (a *activity) above(write func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.row.clear()
	write()
	a.draw()
}

// Write implements [io.Writer] for other output to stderr.
func (a *activity) Write(p []byte) (n int, err error) {
	a.above(func() { n, err = a.out.w.Write(p) })
	return n, err
}

// Fd returns the file descriptor of stderr, which the log uses to detect a terminal.
func (a *activity) Fd() uintptr {
	if f, ok := a.out.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

var _ io.Writer = (*activity)(nil)

func (a *activity) draw() {
	if !a.out.terminal {
		return
	}
	if a.text == "" {
		a.row.clear()
		return
	}
	_ = a.row.draw(a.line()) // best effort: not part of the output
}

// barWidth is the width of a progress bar, in columns.
const barWidth = 24

// line returns the activity, a bar, the count and the time. It is shorter than a row, because a
// full row would wrap and could not be erased.
func (a *activity) line() string {
	since := a.now().Sub(a.began)
	parts := []string{age(since)}
	if a.total > 0 {
		parts = []string{fmt.Sprintf("%d of %d", a.done, a.total), age(since)}
		if left := since * time.Duration(a.total-a.done) / time.Duration(max(a.done, 1)); a.alike && a.done > 0 && since > time.Second {
			parts = append(parts, age(left.Round(time.Second))+" left")
		}
	}
	words := strings.Join(parts, "  ")
	limit := a.out.width - 1
	if a.out.width == 0 {
		limit = len(a.text) + len(words) + barWidth + 2*columnGap
	}
	text := words + "  " + a.text
	if a.total > 0 && limit > 2*barWidth {
		return a.out.bar(uint64(a.done), uint64(a.total), barWidth) + "  " + shorten(text, limit-barWidth-2)
	}
	return shorten(text, limit)
}

// bar draws the completed part of the total.
func (s screen) bar(done, total uint64, width int) string {
	full := 0
	if total > 0 {
		full = int(min(done, total) * uint64(width) / total)
	}
	on, off := "█", "░"
	if !s.colour {
		on, off = "#", "."
	}
	return s.paint(green, strings.Repeat(on, full)) + s.paint(faint, strings.Repeat(off, width-full))
}
