package cli

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/clients/go/batchfile"
)

const (
	drawEvery = 200 * time.Millisecond
	sayEvery  = 5 * time.Second
	// rateOver is the time window of the rate.
	rateOver = 10 * time.Second
)

// batchProgress shows the progress of a batch on stderr: at a terminal as one line that it
// redraws, elsewhere as a line every few seconds.
type batchProgress struct {
	job func() batchfile.Progress

	mu      sync.Mutex
	line    progressLine
	said    string // the last line that was not overwritten
	samples []sample
	failing bool
	absent  []string // missing servers that calls wait for

	stop func() // of the redraws
}

// sample is the number of results at a point in time.
type sample struct {
	at   time.Time
	done uint64
}

func newBatchProgress(s screen, job func() batchfile.Progress) *batchProgress {
	p := &batchProgress{line: progressLine{s: s}, job: job, samples: []sample{{time.Now(), job().Results.Lines}}}
	every := sayEvery
	if s.terminal {
		every = drawEvery
	}
	p.stop = repeat(every, p.draw)
	return p
}

// end removes the line.
func (p *batchProgress) end() {
	p.stop()
	p.line.clear()
}

// trouble prints a retry notice once. The next result resets it.
func (p *batchProgress) trouble(why string, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failing {
		return
	}
	p.failing = true
	p.line.clear()
	_ = p.line.s.text(fmt.Sprintf("%s; retrying in %.1f s.\n", strings.TrimRight(oneLine(why), "."), pause.Seconds())) // best effort: not part of the output
}

// missing shows the servers that Callyard does not have and calls wait for. It calls warn for each.
func (p *batchProgress) missing(servers []string, warn func(server, place string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.absent = servers
	if len(servers) > 0 {
		p.line.clear()
	}
	for _, server := range servers {
		warn(server, "")
	}
}

func (p *batchProgress) draw(now time.Time) {
	s := p.job()
	p.mu.Lock()
	defer p.mu.Unlock()
	done := s.Results.Lines
	if last := p.samples[len(p.samples)-1]; done > last.done {
		p.failing = false
	}
	p.samples = append(p.samples, sample{now, done})
	for len(p.samples) > 2 && now.Sub(p.samples[0].at) > rateOver {
		p.samples = p.samples[1:]
	}
	old := p.samples[0]
	f := figures{tally: s.Results, total: max(s.Stored, done), sealed: s.Sealed, absent: p.absent}
	if since := now.Sub(old.at).Seconds(); since > 0 {
		f.rate = float64(done-min(old.done, done)) / since
	}
	out := p.line.s
	if out.terminal {
		bar, used := "", 1 // a full row would wrap and could not be erased
		if out.width == 0 || out.width >= 3*barWidth {
			bar, used = out.bar(done, f.total, barWidth)+" ", barWidth+2
		}
		_ = p.line.draw(bar + f.line(max(out.width-used, 0))) // best effort: not part of the output
	} else if text := f.line(0); text != p.said {
		p.said = text
		_ = out.text(text + "\n") // best effort: not part of the output
	}
}

// figures holds the displayed counts of a batch.
type figures struct {
	tally  batchfile.Tally
	total  uint64 // stored calls
	sealed bool   // no more calls will be added
	rate   float64
	absent []string // missing servers that calls wait for
}

// line formats the figures, most important first. It omits those that do not fit the width.
func (f *figures) line(width int) string {
	t := &f.tally
	total := number(f.total)
	if !f.sealed {
		total += "+"
	}
	parts := []string{number(t.Lines) + "/" + total}
	if f.sealed && f.total > 0 {
		parts[0] = fmt.Sprintf("%3d%%  %s", t.Lines*100/f.total, parts[0])
	}
	parts = append(parts, number(uint64(f.rate+0.5))+"/s", "ok "+number(t.Succeeded-t.ToolErrors))
	if f.sealed && f.rate > 0.1 && f.total > t.Lines {
		left := time.Duration(float64(f.total-t.Lines) / f.rate * float64(time.Second))
		parts = append(parts, age(left.Round(time.Second))+" left")
	}
	for _, n := range []struct {
		name  string
		count uint64
	}{{"unknown", t.Unknown}, {"failed", t.Failed}, {"tool errors", t.ToolErrors}} {
		if n.count > 0 {
			parts = append(parts, n.name+" "+number(n.count))
		}
	}
	if len(f.absent) > 0 {
		parts = slices.Insert(parts, 1, "no server "+oneLine(strings.Join(f.absent, ", ")))
	}
	text := parts[0]
	for _, part := range parts[1:] {
		if width > 0 && columnsOf(text)+2+columnsOf(part) > width {
			break
		}
		text += "  " + part
	}
	return text
}
