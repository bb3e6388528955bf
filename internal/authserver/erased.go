package authserver

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// apart is the maximum clock difference between processes. A grant that was given within this
	// time after the erasure of its tenant ends too.
	apart = time.Minute
	// eraseFor is the timeout for scanning all grants. The backoff after a failure starts at
	// eraseAgain and is at most eraseMost.
	eraseFor   = time.Minute
	eraseAgain = time.Second
	eraseMost  = 30 * time.Second
)

// erasures ends the grants of people whose tenant was erased. Front doors erase tenants, and
// only approvers may change grants. Therefore each approver follows the marks that an erasure
// writes, including those written while it was down.
type erasures struct {
	s     *Server
	watch *bus.StreamWatch
	stop  context.CancelFunc
	work  sync.WaitGroup
	wake  chan struct{} // has a buffer of one

	mu sync.Mutex
	at map[schema.TenantID]time.Time // time of the last erasure of each
}

// followErasures starts to end the grants of erased tenants.
func (s *Server) followErasures(ctx context.Context) (*erasures, error) {
	e := &erasures{s: s, wake: make(chan struct{}, 1), at: map[schema.TenantID]time.Time{}}
	var err error
	if e.watch, err = datakey.WatchErased(ctx, s.o.Conn, e.erased); err != nil {
		return nil, err
	}
	var running context.Context
	running, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.look() // the mark of an erased tenant that is used again may be gone
	e.work.Go(func() { e.run(running) })
	return e, nil
}

func (e *erasures) close() {
	if e == nil {
		return
	}
	e.watch.Close()
	e.stop()
	e.work.Wait()
}

func (e *erasures) look() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// erased handles the mark of a tenant.
func (e *erasures) erased(tenant schema.TenantID, at time.Time) {
	e.mu.Lock()
	if at.After(e.at[tenant]) {
		e.at[tenant] = at
	}
	e.mu.Unlock()
	e.look()
}

func (e *erasures) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		for wait := eraseAgain; ; wait = min(2*wait, eraseMost) {
			err := e.sweep(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			e.s.o.Log.Warn("the access that people gave to programs cannot be read, to end that of erased tenants and to encrypt the rest with the newest key; it is tried again", "error", err)
			if !sleep.For(wait, ctx.Done()) {
				return
			}
		}
	}
}

// sweep ends all current grants of erased tenants, and encrypts the others with the newest key.
func (e *erasures) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eraseFor)
	defer cancel()
	rows, err := e.s.grants.rows.All(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	at := maps.Clone(e.at)
	e.mu.Unlock()
	for name, sealed := range rows {
		id, err := hex.DecodeString(name)
		if err != nil {
			continue
		}
		one, err := e.s.grants.open(ctx, id, sealed)
		if !ends(one, err, at) {
			if err == nil && one.former {
				err = e.s.grants.rewrap(ctx, id, e.s.o.Now())
			}
			if err != nil && !errors.Is(err, bus.ErrNotFound) {
				return err
			}
			continue
		}
		if err := e.s.endErased(ctx, id, at); err != nil {
			return err
		}
	}
	return nil
}

// ends reports whether a grant that was read, with the error of reading it, ends with its tenant.
func ends(one *grant, err error, at map[schema.TenantID]time.Time) bool {
	if err != nil {
		return errors.Is(err, errErased)
	}
	erased, ok := at[one.Person.Tenant.OrDefault()]
	return ok && one.Given.Before(erased.Add(apart))
}

// endErased ends a grant of an erased tenant. If several approvers do so, only one records it.
func (s *Server) endErased(ctx context.Context, id []byte, at map[schema.TenantID]time.Time) error {
	name := hex.EncodeToString(id)
	if err := s.announceEnd(ctx, id); err != nil {
		return err
	}
	for {
		sealed, revision, err := s.grants.rows.Fresh(ctx, name)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		one, err := s.grants.open(ctx, id, sealed)
		switch {
		case ends(one, err, at):
		case errors.Is(err, bus.ErrNotFound):
			return nil
		default:
			return err
		}
		err = s.grants.rows.Remove(ctx, name, revision)
		if errors.Is(err, bus.ErrConflict) {
			continue // it was used in the meantime, or another approver was faster
		}
		if err != nil {
			return err
		}
		if one == nil {
			one = &grant{} // its person cannot be decrypted any longer
		}
		s.record(ctx, id, one, Event{Kind: Ended, Why: ByErasure})
		s.o.Log.Info("the access of a program has ended with the tenant of its person", "grant", name)
		return nil
	}
}
