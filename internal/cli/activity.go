package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// activity shows on stderr what a command is busy with: at a terminal as one line with a
// bar, which it draws again and again; elsewhere as a line for each activity if plain is
// set, else not at all. What else goes to stderr,
// such as the log, is written through it, so that it stands above the line.
type activity struct {
	out   screen
	plain bool // write a line for each activity if there is no terminal
	alike bool // the steps take about the same time, so that the time left is known
	now   func() time.Time

	mu          sync.Mutex
	text        string // "" is no line
	done, total int
	began       time.Time
	shown       bool

	stop  chan struct{}
	once  sync.Once
	ended sync.WaitGroup
}

func newActivity(out screen) *activity {
	a := &activity{out: out, now: time.Now, stop: make(chan struct{})}
	if !out.terminal {
		return a
	}
	a.ended.Go(func() {
		tick := time.NewTicker(drawEvery)
		defer tick.Stop()
		for {
			select {
			case <-a.stop:
				return
			case <-tick.C:
				a.mu.Lock()
				a.draw()
				a.mu.Unlock()
			}
		}
	})
	return a
}

// step sets the current activity, and the number of steps that are done; total is 0 if it
// is not known. An empty text removes the line.
func (a *activity) step(done, total int, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.began.IsZero() {
		a.began = a.now()
	}
	if a.plain && !a.out.terminal && text != "" && text != a.text {
		_ = a.out.text(oneLine(text) + "\n") // it is no part of the answer
	}
	a.text, a.done, a.total = text, done, total
	a.draw()
}

// end takes the line away for good. It may be called again.
func (a *activity) end() {
	a.once.Do(func() { close(a.stop) })
	a.ended.Wait()
	a.step(0, 0, "")
}

// above writes something else to the terminal, above the line.
func (a *activity) above(write func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clear()
	write()
	a.draw()
}

// Write implements [io.Writer] for what else goes to stderr.
func (a *activity) Write(p []byte) (n int, err error) {
	a.above(func() { n, err = a.out.w.Write(p) })
	return n, err
}

// Fd is the file of stderr, by which the log knows a terminal.
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
		a.clear()
		return
	}
	a.shown = true
	_ = a.out.text("\r\x1b[K" + a.line()) // it is no part of the answer
}

func (a *activity) clear() {
	if a.shown {
		_ = a.out.text("\r\x1b[K") // it is no part of the answer
		a.shown = false
	}
}

// barWidth is the width of a progress bar, in columns.
const barWidth = 24

// line is what is shown: the activity, a bar, the count and the time. It is shorter than a
// row, because a full one would wrap and stay.
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

// bar is the part of the total that is done.
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
