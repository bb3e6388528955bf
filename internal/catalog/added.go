package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// addTimeout bounds how long the addition of a server waits for it: a little more
	// than a server may take to start by default.
	addTimeout = 2*time.Minute + 5*time.Second
	askTimeout = 12 * time.Second
)

// AddServer has every worker that takes servers over the API hold the server,
// now and after a restart, and waits until one of them has it initialized or
// says that it failed. entry is its entry in the shape of the servers file,
// without the id. Errors: KindConflict for an id that exists, KindUnavailable
// when no worker takes servers, and what the worker says of the entry.
func (c *Catalog) AddServer(ctx context.Context, id, by string, entry json.RawMessage) (Server, error) {
	if _, err := c.Server(id); err == nil {
		return Server{}, schema.Errorf(schema.KindConflict, "Server %q exists already. DELETE /servers/%s removes one that was added over the API.", id, url.PathEscape(id))
	}
	changes, cancel := c.Changes()
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, addTimeout)
	defer stop()
	if err := c.startOn(ctx, id, entry); err != nil {
		return Server{}, err
	}
	row := bus.AddedServer{ID: id, Definition: entry, By: by, At: time.Now().UTC()}
	if err := c.added.Put(ctx, row); err != nil {
		return Server{}, schema.Errorf(schema.KindUnavailable, "The server was started but could not be recorded; remove it or try again: %w", err)
	}
	c.addedChanged()
	for {
		s, err := c.Server(id)
		_, unread := c.Definitions(id) // it can be called once its tools are known
		if err == nil && s.State != schema.StateStarting && (s.State != schema.StateInitialized || unread == nil) {
			if s.State == schema.StateInitialized {
				return s, nil
			}
			err := schema.Errorf(schema.KindServerFailed, "Server %q does not start: %s", id, s.Error)
			return s, errors.Join(err, c.RemoveServer(context.WithoutCancel(ctx), id))
		}
		select {
		case <-changes:
		case <-ctx.Done():
			err := schema.Errorf(schema.KindServerFailed, "Server %q was not ready within %s.", id, addTimeout)
			return Server{}, errors.Join(err, c.RemoveServer(context.WithoutCancel(ctx), id))
		}
	}
}

// startOn starts the server on every worker that takes servers over the API.
func (c *Catalog) startOn(ctx context.Context, id string, entry json.RawMessage) error {
	err := error(schema.Errorf(schema.KindUnavailable, "No worker takes servers over the API: set worker.api_servers on at least one."))
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

// RemoveServer ends a server that was added over the API, everywhere and for
// good. The error is of KindNotFound, or KindConflict for one from a servers file.
func (c *Catalog) RemoveServer(ctx context.Context, id string) error {
	if _, ok := c.added.Get(bus.ServerKey(id)); !ok {
		if _, err := c.Server(id); err != nil {
			return err
		}
		return schema.Errorf(schema.KindConflict, "Server %q is in a worker's servers file; take it out there.", id)
	}
	if err := c.added.Delete(ctx, bus.ServerKey(id)); err != nil {
		return schema.Errorf(schema.KindUnavailable, "The removal could not be recorded, so nothing changed: %w", err)
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

// RestartServer has every worker that holds the server replace it by a new start of
// itself, without failing calls. It returns when they have begun. The error is of
// KindNotFound for a server that no worker holds, else the first that a worker gave.
func (c *Catalog) RestartServer(ctx context.Context, id string) error {
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
		return schema.Errorf(schema.KindUnavailable, "No live worker holds server %q now, so there is nothing to restart.", id)
	}
	return first
}

// spread gives added servers to workers that came later.
func (c *Catalog) spread(ctx context.Context) {
	for _, row := range c.added.All() {
		for _, w := range c.Workers() {
			if !w.APIServers || w.Draining || holds(&w, row.ID) {
				continue
			}
			if _, err := c.router.Request(ctx, w.ID, bus.MethodStart, row.ID, row.Definition, askTimeout); err != nil && ctx.Err() == nil {
				c.log.Warn("a worker did not take a server that was added over the API", "server", row.ID, "worker", w.ID, "error", err)
			}
		}
	}
}

func holds(w *schema.Worker, id string) bool {
	for i := range w.Servers {
		if w.Servers[i].ID == id {
			return true
		}
	}
	return false
}
