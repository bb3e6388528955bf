package session

import "time"

const (
	// firstSilence is how long a server that keeps failing is not logged again after the first
	// line. Each later silence is twice as long, up to lastSilence.
	firstSilence = 5 * time.Second
	lastSilence  = 5 * time.Minute
)

// warnings spaces out the log lines of a server that keeps failing. Its owner guards it.
type warnings struct {
	silence time.Duration // after the last line; 0 before the first
	until   time.Time
	unsaid  int
}

// due reports whether to log a failure at the time now, and the number of failures that were not
// logged since the last line.
func (w *warnings) due(now time.Time) (unsaid int, ok bool) {
	if now.Before(w.until) {
		w.unsaid++
		return 0, false
	}
	w.silence = min(max(2*w.silence, firstSilence), lastSilence)
	w.until = now.Add(w.silence)
	unsaid, w.unsaid = w.unsaid, 0
	return unsaid, true
}

// warn logs a failure of the server, unless one was logged a short while ago.
func (k *keeper) warn(msg string, args ...any) {
	p := k.pool
	p.mu.Lock()
	unsaid, ok := p.warnings.due(time.Now())
	silence := p.warnings.silence
	p.mu.Unlock()
	if !ok {
		p.log.Debug(msg, args...) //nolint:sloglint // a constant at each caller
		return
	}
	if unsaid > 0 {
		args = append(args, "not_logged", unsaid)
	}
	p.log.Warn(msg, append(args, "quiet_for", silence)...) //nolint:sloglint // as above
}
