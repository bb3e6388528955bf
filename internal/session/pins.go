package session

import (
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// pinRetry is the time between attempts to read the lists of a session on which calls wait
// for that.
const pinRetry = time.Second

// pins are the definitions that a session listed last, for [Config].Pinned. The zero value
// has none.
type pins struct {
	told atomic.Uint64 // how often the lists may have changed
	last atomic.Pointer[listed]
}

// listed is one reading of the lists.
type listed struct {
	upTo    uint64            // what told was before
	sum     string            // of everything
	digests map[string]string // of the definitions, by tool
}

// pinState is what [pins.check] finds.
type pinState int

const (
	pinSame    pinState = iota
	pinStale            // the lists may have changed since they were read
	pinDiffers          // the tool has another definition, or there is none
)

func (p *pins) check(r *Request) pinState {
	last := p.last.Load()
	switch {
	case last == nil || last.upTo != p.told.Load():
		return pinStale
	case last.digests[r.Name] != r.Digest:
		return pinDiffers
	}
	return pinSame
}

// begin is called before a reading of the lists, and its result is for set. From then on
// calls of a pinned server wait: what they find may be what is being read.
func (p *pins) begin(cfg *Config) (upTo uint64) {
	if !cfg.Pinned {
		return 0
	}
	return p.told.Add(1)
}

// set takes in what was read. It returns true where the last reading was different: that
// of the session or, for its first one, that of any session.
func (p *pins) set(defs *schema.Definitions, sum string, upTo uint64, sameAsAny bool) (changed bool) {
	last := p.last.Load()
	if last != nil && last.sum == sum {
		p.last.Store(&listed{upTo, sum, last.digests})
		return false
	}
	digests := make(map[string]string, len(defs.Tools))
	for _, raw := range defs.Tools {
		if name := member(raw, "name"); digests[name] == "" { // the first of a name counts
			digests[name] = schema.Digest(raw)
		}
	}
	p.last.Store(&listed{upTo, sum, digests})
	return last != nil || !sameAsAny
}

// rereads says that calls with a digest have to wait until the lists of the session were
// read again.
func (p *Pool) rereads(s *session) bool {
	if !p.cfg.Pinned || p.cutOff { // there a call has nowhere to wait
		return false
	}
	last := s.pins.last.Load()
	return last == nil || last.upTo != s.pins.told.Load()
}

// doubtOthers has the lists of all other sessions read again, because those of one are not
// what they were. A session that lists what it listed before puts none in doubt, so that
// two servers which differ do not keep each other reading.
func (o *offers) doubtOthers(s *session) {
	p := o.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range p.all {
		if other != s {
			other.pins.told.Add(1)
			other.changes.Store(true)
		}
	}
	o.changed()
}

// differs is the error of a call that was checked against another definition.
func (p *Pool) differs(r *Request) *schema.Error {
	return schema.Errorf(schema.KindUnavailable, "The tool %q of the server %q does not have the definition that the call was checked against; the call did not start. Send it again.", r.Name, p.cfg.Spec.ID).RetryableAfter(time.Second)
}
