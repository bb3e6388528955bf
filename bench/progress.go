package bench

import (
	"fmt"
	"io"
	"os"
)

// progressLine shows the progress of a run: one updated line on a terminal, otherwise
// one line for each measurement.
type progressLine struct {
	w     io.Writer
	live  bool
	shown bool
}

func newProgressLine(w io.Writer) *progressLine {
	return &progressLine{w: w, live: isTerminal(w)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progressLine) tell(now Progress) {
	text := fmt.Sprintf("[%d/%d] round %d, %s, c=%d, %s: %s calls/s, p50 %s ms",
		now.Done, now.All, now.Round, bytesText(now.Size), now.Concurrency, now.Target,
		countText(now.Sample.Rate), milliText(now.Sample.P50))
	if now.Sample.Errors > 0 {
		text += fmt.Sprintf(", %d errors", now.Sample.Errors)
	}
	if p.live {
		// Return to the start of the line and clear it.
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.shown = true
		return
	}
	fmt.Fprintln(p.w, text)
}

// end ends the line.
func (p *progressLine) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
