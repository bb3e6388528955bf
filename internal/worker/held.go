package worker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// held is one server of this worker.
type held struct {
	served    Served
	pool      *session.Pool  // nil if the server runs in containers only
	sandboxed *sandboxed     // nil if the server has no container
	asking    *asking        // nil if the server may not ask its callers
	personal  *personal      // nil if its calls need no credential of a person
	leases    *leases        // nil if its processes are not leased
	added     bool           // added over the API
	taking    sync.WaitGroup // one per call that is being handed over; added to under the worker's mu
	tools     atomic.Pointer[definitions]
	rulesOf   atomic.Pointer[string] // digest of the tools that the rules were last checked against
}

// snapshot returns the current state of the server, without the operator's settings.
func (h *held) snapshot() schema.Server {
	if h.pool == nil {
		s := h.sandboxed.snapshot()
		s.Sandbox = h.sandboxed.report()
		return s
	}
	s := h.pool.Snapshot()
	if h.sandboxed != nil {
		s.Sandbox = h.sandboxed.report()
	}
	return s
}

// definitions returns the definitions of the server: those of its sessions or, if it runs in
// containers only, those of the first container.
func (h *held) definitions() (*schema.Definitions, string) {
	if h.pool == nil {
		return h.sandboxed.definitions()
	}
	return h.pool.Definitions()
}

func (h *held) noise() int64 {
	if h.pool == nil {
		return 0
	}
	return h.pool.Noise()
}

// close ends everything of the server; see [session.Pool.Close].
func (h *held) close(ctx context.Context) error {
	var closed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if h.sandboxed != nil {
			closed = h.sandboxed.close(ctx)
		}
	}()
	if h.asking != nil {
		h.asking.close(ctx)
	}
	if h.personal != nil {
		h.personal.close(ctx)
	}
	if h.leases != nil {
		h.leases.drain(ctx)
		h.leases.close()
	}
	var err error
	if h.pool != nil {
		err = h.pool.Close(ctx)
	}
	<-done
	return errors.Join(err, closed)
}
