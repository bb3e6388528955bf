// Package warnings spaces out the log lines about an operation that is repeated and keeps failing, so
// that a long outage does not fill the log.
//
// The first failure is logged at once. Later ones are logged after pauses that double, with the number
// of failures in between. It does not decide when to try again: package backoff computes that.
package warnings

import (
	"log/slog"
	"time"
)

const (
	// firstSilence is how long an operation that keeps failing is not logged again after the first
	// line. Each later silence is twice as long, up to lastSilence.
	firstSilence = 5 * time.Second
	lastSilence  = 5 * time.Minute
)

// Spacing spaces out the log lines of one operation. The zero value is that of an operation that works.
// Its owner guards it.
type Spacing struct {
	silence   time.Duration // after the last line; 0 before the first
	until     time.Time
	notLogged int
}

// Due reports whether to log a failure at the time now, and the number of failures that were not
// logged since the last line.
func (s *Spacing) Due(now time.Time) (notLogged int, ok bool) {
	if now.Before(s.until) {
		s.notLogged++
		return 0, false
	}
	s.silence = min(max(2*s.silence, firstSilence), lastSilence)
	s.until = now.Add(s.silence)
	notLogged, s.notLogged = s.notLogged, 0
	return notLogged, true
}

// Silence returns the time for which further failures are not logged after the last line.
func (s *Spacing) Silence() time.Duration { return s.silence }

// Report logs the outcome of an attempt: err with the message failed when a line is due, and the
// message works for the first success after a failure.
func (s *Spacing) Report(log *slog.Logger, err error, failed, works string) {
	if err == nil {
		if s.silence > 0 {
			log.Info(works) //nolint:sloglint // a constant at each caller
		}
		*s = Spacing{}
		return
	}
	if notLogged, ok := s.Due(time.Now()); ok {
		log.Warn(failed, "error", err, "not_logged", notLogged) //nolint:sloglint // as above
	}
}
