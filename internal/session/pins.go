package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// pinRetry is the time between attempts to read the lists of a session while calls wait for them.
const pinRetry = time.Second

// pins holds the digests of the definitions that a session listed last, for [Config].Pinned. The
// zero value has none.
type pins struct {
	changes atomic.Uint64 // incremented whenever the lists may have changed
	last    atomic.Pointer[listed]
}

// listed is one reading of the lists.
type listed struct {
	asOf    uint64            // value of changes when the read began
	sum     string            // digest of all definitions
	digests map[string]string // digests of the definitions, by tool
}

// pinState is the result of [pins.check].
type pinState int

const (
	pinSame    pinState = iota
	pinStale            // the lists may have changed since they were read
	pinDiffers          // the tool has another definition or none
)

func (p *pins) check(r *Request) pinState {
	last := p.last.Load()
	switch {
	case last == nil || last.asOf != p.changes.Load():
		return pinStale
	case last.digests[r.Name] != r.Digest:
		return pinDiffers
	}
	return pinSame
}

// begin is called before the lists are read. Its result is passed to set. From then on calls of a
// pinned server wait, because they may depend on what is being read.
func (p *pins) begin(cfg *Config) (asOf uint64) {
	if !cfg.Pinned {
		return 0
	}
	return p.changes.Add(1)
}

// set stores the lists that were read. It returns true if they differ from the previous read of
// this session or, for the first read of the session, from those of the pool.
func (p *pins) set(defs *schema.Definitions, sum string, asOf uint64, sameAsAny bool) (changed bool) {
	last := p.last.Load()
	if last != nil && last.sum == sum {
		p.last.Store(&listed{asOf, sum, last.digests})
		return false
	}
	digests := make(map[string]string, len(defs.Tools))
	for _, raw := range defs.Tools {
		if name := member(raw, "name"); digests[name] == "" { // the first tool of a name counts
			digests[name] = schema.Digest(raw)
		}
	}
	p.last.Store(&listed{asOf, sum, digests})
	return last != nil || !sameAsAny
}

// rereads reports whether calls with a digest must wait until the lists of the session have been
// read again.
func (p *Pool) rereads(s *session) bool {
	if !p.cfg.Pinned || p.cutOff { // with cutOff, a call must not wait
		return false
	}
	last := s.pins.last.Load()
	return last == nil || last.asOf != s.pins.changes.Load()
}

// maxReadFirst limits the reads for one call of a server that reports a change after each.
const maxReadFirst = 3

// readFirst sends a call after it has read the lists of the session, if no calls may wait in the
// pool: then nothing else reads the lists again. It does not wait for that. It returns false if calls
// may wait, or the pool is closing.
func readFirst(p *Pool, s *session, r *Running) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cutOff || p.closing {
		return false
	}
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, r.timeout)
		defer cancel()
		for range maxReadFirst {
			if err := p.offers.read(ctx, s); err != nil || s.pins.check(r.req) != pinStale {
				break
			}
		}
		sendNow(p, s, r) // it ends a call whose tool could not be read
	})
	return true
}

// doubtOthers makes all other sessions read their lists again, because the lists of one have
// changed. A session whose lists are unchanged triggers no reads, so that two servers that differ
// do not make each other read forever.
func (o *offers) doubtOthers(s *session) {
	p := o.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range p.all {
		if other != s {
			other.pins.changes.Add(1)
			other.changes.Store(true)
		}
	}
	o.changed()
}

// differs returns the error of a call that was checked against another definition.
func (p *Pool) differs(r *Request) *schema.Error {
	return schema.Errorf(schema.KindUnavailable, "The tool %q of the server %q does not have the definition that the call was checked against; the call did not start. Send it again.", r.Name, p.cfg.Spec.ID).RetryableAfter(time.Second)
}
