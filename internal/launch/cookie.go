package launch

import (
	"bytes"
	"sync"
	"time"
)

// carries reports whether an environment in the format of /proc (NAME=value entries, each ended by
// NUL) holds a cookie that matches.
func carries(environ []byte, match func(cookie []byte) bool) bool {
	if !bytes.Contains(environ, []byte(cookieVariable)) { // the usual case, and a fast check
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if name, value, ok := bytes.Cut(entry, []byte{'='}); ok && string(name) == cookieVariable && match(value) {
			return true
		}
	}
	return false
}

// isReaperEnviron reports whether a process with this environment is a reaper.
func isReaperEnviron(environ []byte) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == reaperVariable+"=1" {
			return true
		}
	}
	return false
}

// sweepLimit limits one sweep, so that processes that fork faster than they can be killed do not
// block the worker forever.
const sweepLimit = 5 * time.Second

// sweeper kills processes that ended children left behind. One scan of all processes costs the same
// for one cookie as for hundreds, so callers that arrive during a scan share the next one.
type sweeper struct {
	queue struct {
		sync.Mutex
		waiting []*sweep
	}
	run sync.Mutex // held during a scan; guards sweep.done
}

type sweep struct {
	cookie string
	done   bool
}

// sweep returns when no process with exactly this cookie is left.
func (s *sweeper) sweep(cookie string) {
	mine := &sweep{cookie: cookie}
	s.queue.Lock()
	s.queue.waiting = append(s.queue.waiting, mine)
	s.queue.Unlock()

	s.run.Lock()
	defer s.run.Unlock()
	if mine.done {
		return
	}
	s.queue.Lock()
	batch := s.queue.waiting
	s.queue.waiting = nil
	s.queue.Unlock()

	cookies := make(map[string]struct{}, len(batch))
	for _, w := range batch {
		cookies[w.cookie] = struct{}{}
	}
	killMatching(func(c []byte) bool { _, ok := cookies[string(c)]; return ok }, sweepLimit)
	for _, w := range batch {
		w.done = true
	}
}
