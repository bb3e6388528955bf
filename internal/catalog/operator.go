package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/store/servertable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// addTimeout limits the wait for an added server. It is slightly longer than the default start
	// timeout of a server.
	addTimeout = 2*time.Minute + 5*time.Second
	askTimeout = 12 * time.Second
)

// Operator changes the servers of the fleet. It is safe for concurrent use.
type Operator struct{ c *Catalog }

// Operator returns the part of the catalog that changes the fleet.
func (c *Catalog) Operator() Operator { return Operator{c} }

// Add starts a server on every worker that accepts servers over the API, now and after a
// restart. It waits until one of them has initialized it or reports a failure. entry has the format
// of an entry in the servers file, without the id. Errors: KindConflict for an id that exists,
// KindUnavailable if no worker accepts servers, or a worker's error about the entry.
func (o Operator) Add(ctx context.Context, id schema.ServerID, by string, entry json.RawMessage) (Server, error) {
	c := o.c
	if _, err := c.Server(id); err == nil {
		return Server{}, schema.Errorf(schema.KindConflict, "Server %q already exists. DELETE /servers/%s removes a server that was added over the API.", id, url.PathEscape(string(id)))
	}
	ctx, stop := context.WithTimeout(ctx, addTimeout)
	defer stop()
	if err := o.startOn(ctx, id, entry); err != nil {
		return Server{}, err
	}
	row := servertable.Server{ID: id, Definition: entry, By: by, At: time.Now().UTC()}
	if err := c.added.Put(ctx, row); err != nil {
		return Server{}, schema.Errorf(schema.KindUnavailable, "The server was started but could not be recorded; remove it or try again: %w", err)
	}
	c.addedChanged()
	s, err := o.Await(ctx, id)
	switch {
	case err != nil:
		err = schema.Errorf(schema.KindServerFailed, "Server %q was not ready within %s.", id, addTimeout)
	case s.State != schema.StateInitialized:
		err = notStarted(&s)
	default:
		return s, nil
	}
	return s, errors.Join(err, o.Remove(context.WithoutCancel(ctx), id))
}

// maxStderrQuote limits the stderr output, in bytes, that the error of a failed start quotes.
const maxStderrQuote = 1 << 10

// notStarted returns the error of a server that did not start, with the end of its stderr. The
// server is removed, so its stderr cannot be read anywhere else.
func notStarted(s *Server) *schema.Error {
	text := cmp.Or(s.Error, fmt.Sprintf("Server %q did not start.", s.ID))
	said := strings.TrimSpace(s.StderrTail)
	if len(said) > maxStderrQuote {
		said = truncate.Tail(said, maxStderrQuote)
		if _, whole, ok := strings.Cut(said, "\n"); ok {
			said = whole
		}
	}
	if said != "" {
		text += " The end of its stderr:\n" + said
	}
	return schema.Errorf(schema.KindServerFailed, "%s", text)
}

// Await waits until a server can be called, which requires its tools, or until its start has
// failed; see the state of the result. The error is that of ctx.
func (o Operator) Await(ctx context.Context, id schema.ServerID) (Server, error) {
	changes, cancel := o.c.Changes()
	defer cancel()
	for {
		s, err := o.c.Server(id)
		_, unread := o.c.Definitions(id)
		if err == nil && s.State != schema.StateStarting && (s.State != schema.StateInitialized || unread == nil) {
			return s, nil
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return Server{}, ctx.Err()
		}
	}
}

// Entry returns the entry of a server that was added over the API, exactly as it was sent.
func (o Operator) Entry(id schema.ServerID) (json.RawMessage, bool) {
	row, ok := o.c.added.Get(servertable.Key(id))
	return row.Definition, ok
}

// startOn starts the server on every worker that accepts servers over the API.
func (o Operator) startOn(ctx context.Context, id schema.ServerID, entry json.RawMessage) error {
	c := o.c
	err := error(schema.Errorf(schema.KindUnavailable, "No worker accepts servers over the API: set worker.api_servers on at least one."))
	started := false
	for _, w := range c.Workers() {
		if !w.APIServers || w.Draining {
			continue
		}
		if _, askErr := c.router.Request(ctx, w.ID, bus.MethodStart, id, entry, askTimeout); askErr != nil {
			err = askErr
			continue
		}
		started = true
	}
	if started {
		return nil
	}
	return err
}

// Remove stops a server that was added over the API on all workers, permanently. The error is of
// KindNotFound, or of KindConflict for a server from a servers file.
func (o Operator) Remove(ctx context.Context, id schema.ServerID) error {
	c := o.c
	if _, ok := c.added.Get(servertable.Key(id)); !ok {
		if _, err := c.Server(id); err != nil {
			return err
		}
		return schema.Errorf(schema.KindConflict, "Server %q is in a worker's servers file; remove it there.", id)
	}
	if err := c.added.Delete(ctx, servertable.Key(id)); err != nil {
		return schema.Errorf(schema.KindUnavailable, "The removal could not be stored, so nothing changed: %w", err)
	}
	c.addedChanged()
	var first error
	for _, w := range c.Workers() {
		if !w.APIServers {
			continue
		}
		if _, err := c.router.Request(ctx, w.ID, bus.MethodStop, id, nil, askTimeout); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Restart makes every worker that runs the server replace it with a new instance, without failing
// calls. It returns when the replacement has begun. The error is of KindNotFound for an unknown
// server, of KindUnavailable if no worker runs it, or else the first error of a worker.
func (o Operator) Restart(ctx context.Context, id schema.ServerID) error {
	c := o.c
	if _, err := c.Server(id); err != nil {
		return err
	}
	var first error
	held := false
	for _, w := range c.Workers() {
		if !holds(&w, id) || w.Draining {
			continue
		}
		held = true
		if _, err := c.router.Request(ctx, w.ID, bus.MethodRestart, id, nil, askTimeout); err != nil && first == nil {
			first = err
		}
	}
	if !held {
		return schema.Errorf(schema.KindUnavailable, "No live worker runs server %q, so it cannot be restarted.", id)
	}
	return first
}

// Drain makes a worker accept no more calls, finish those in progress, and exit. It returns when
// the drain has begun. It does nothing for a worker that is already draining. Errors: KindNotFound
// for a worker that is not live, KindConflict for one that shares its process with other roles.
func (o Operator) Drain(ctx context.Context, id schema.WorkerID) error {
	for _, w := range o.c.Workers() {
		if w.ID != id {
			continue
		}
		if w.Draining {
			return nil
		}
		_, err := o.c.router.Request(ctx, w.ID, bus.MethodDrain, "", nil, askTimeout)
		return err
	}
	return schema.Errorf(schema.KindNotFound, "No live worker has the id %q. GET /workers lists them.", id)
}

// spread starts added servers on workers that joined later. It asks a worker that refuses again each
// time, because the cause may have been repaired, and logs the same refusal once.
func (r *reader) spread(ctx context.Context) {
	c := r.c
	refused := make(map[placement]string)
	for _, row := range c.added.All() {
		for _, w := range c.Workers() {
			if !w.APIServers || w.Draining || holds(&w, row.ID) {
				continue
			}
			_, err := c.router.Request(ctx, w.ID, bus.MethodStart, row.ID, row.Definition, askTimeout)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				continue
			}
			at := placement{row.ID, w.ID}
			if refused[at] = err.Error(); refused[at] != r.refused[at] {
				c.log.Warn("a worker did not accept a server that was added over the API; it is asked again, and the same refusal is not logged again", "server", row.ID, "worker", w.ID, "error", err)
			}
		}
	}
	r.refused = refused
}

// stopOrphans stops servers that were removed while their workers were disconnected. A server that
// is being added is not in the table yet, so they are left alone for as long as that may take.
func (r *reader) stopOrphans(ctx context.Context, now time.Time) {
	c := r.c
	orphans := make(map[placement]time.Time)
	for _, w := range c.Workers() {
		for i := range w.Servers {
			at := placement{w.Servers[i].ID, w.ID}
			if _, ok := c.added.Get(servertable.Key(at.server)); ok || !w.Servers[i].Added {
				continue
			}
			since, known := r.orphans[at]
			if !known {
				since = now
			}
			orphans[at] = since
			if now.Sub(since) < addTimeout {
				continue
			}
			c.log.Info("a server that was removed still runs; it is being stopped", "server", at.server, "worker", at.worker)
			if _, err := c.router.Request(ctx, at.worker, bus.MethodStop, at.server, nil, askTimeout); err != nil {
				c.log.Debug("stopping a removed server", "server", at.server, "worker", at.worker, "error", err)
			}
			orphans[at] = now // it is tried again after the same time
		}
	}
	r.orphans = orphans
}

// placement is a server on a worker.
type placement struct {
	server schema.ServerID
	worker schema.WorkerID
}

func holds(w *schema.Worker, id schema.ServerID) bool {
	for i := range w.Servers {
		if w.Servers[i].ID == id {
			return true
		}
	}
	return false
}
