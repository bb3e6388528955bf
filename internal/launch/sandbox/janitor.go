package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"github.com/callyard/callyard/internal/kit/sleep"
)

const (
	lookEvery  = 3 * time.Second
	clockSlack = time.Minute // tolerance for deadlines set by the clock of another machine
	sweepLimit = 20 * time.Second
	watchPause = time.Second
)

// Janitor removes unneeded containers: those past their deadline, those of this worker that it does not
// know, and those of owners in the same scope for which alive returned false in two scans in a row. It
// scans at once and every three seconds, until ctx ends or the Engine is closed, so containers of a
// killed worker are removed within 10 s. If alive is nil, owners are not checked.
func (e *Engine) Janitor(ctx context.Context, alive func(owner string) bool) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var marks map[string]mark
	failed := false
	for {
		var err error
		marks, err = e.scan(ctx, alive, marks)
		switch closing := ctx.Err() != nil || e.ctx.Err() != nil; {
		case closing:
		case err != nil && !failed: // once for each outage of the engine, not every three seconds
			e.log.Warn("looking for leftover containers failed; it is tried again", "every", lookEvery, "error", err)
		case err == nil && failed:
			e.log.Info("looking for leftover containers succeeds again")
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// mark is the janitor's state of a container between two scans, by container id.
type mark string

const (
	suspect mark = "suspect" // it is removed if the next scan finds it
	ghost   mark = "ghost"   // the engine lists it but does not know it
)

// scan runs one scan. before is the return value of the previous scan.
func (e *Engine) scan(ctx context.Context, alive func(string) bool, before map[string]mark) (map[string]mark, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	list, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", labelOwner)})
	if err != nil {
		return before, err
	}
	marks := make(map[string]mark)
	for _, item := range list.Items {
		if before[item.ID] == ghost {
			marks[item.ID] = ghost
			continue
		}
		owner := item.Labels[labelOwner]
		deadline, err := strconv.ParseInt(item.Labels[labelDeadline], 10, 64)
		late := err == nil && time.Since(time.Unix(deadline, 0)) > clockSlack
		lost := false
		switch {
		case owner == e.o.Owner:
			lost = !e.knows(item.Names)
		case item.Labels[labelScope] == e.o.Scope && alive != nil:
			lost = !alive(owner)
		}
		if lost {
			marks[item.ID] = suspect
		}
		if !late && !(lost && before[item.ID] == suspect) {
			continue
		}
		known, err := removeOne(ctx, e.client, item.ID)
		switch {
		case err != nil:
			e.log.Warn("removing a leftover container failed", "owner", owner, "container", item.ID, "error", err)
		case !known:
			// An engine that removes a container twice at the same time may list it forever (moby
			// 20.10 does). Removing it again would fail every time.
			marks[item.ID] = ghost
		default:
			delete(marks, item.ID)
			e.log.Warn("removed a leftover container", "owner", owner, "server", item.Labels[labelServer], "container", item.ID, "late", late)
		}
	}
	return marks, nil
}

// knows reports whether this Engine holds the container or is creating it.
func (e *Engine) knows(names []string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		if len(name) > 0 && (e.live[name[1:]] != nil || e.making[name[1:]]) { // the engine adds a slash in front
			return true
		}
	}
	return false
}

// watch receives out-of-memory events of the engine. Without it, such containers end as well, but the
// reason is less exact.
func (e *Engine) watch() {
	for e.ctx.Err() == nil {
		stream := e.client.Events(e.ctx, client.EventsListOptions{Filters: make(client.Filters).
			Add("type", string(events.ContainerEventType)).Add("event", string(events.ActionOOM)).Add("label", labelOwner+"="+e.o.Owner)})
		for broken := false; !broken; {
			select {
			case message := <-stream.Messages:
				e.mu.Lock()
				if c := e.live[message.Actor.Attributes["name"]]; c != nil {
					c.oomOne.Do(func() { close(c.oom) })
				}
				e.mu.Unlock()
			case err := <-stream.Err:
				e.log.Debug("the engine's events ended", "error", err)
				broken = true
			}
		}
		sleep.For(watchPause, e.ctx.Done())
	}
}

// Sweep removes all containers of the worker that a note of [Options.Remember] identifies. It is for
// [launch.RunReaper], which calls it after that worker ended. It ignores other notes.
func Sweep(note string) {
	var n struct {
		Host, Certs, Owner string
	}
	if json.Unmarshal([]byte(note), &n) != nil || n.Owner == "" || n.Host == "" {
		return
	}
	d, err := newDial(n.Host, n.Certs)
	if err != nil {
		return
	}
	c, err := d.client()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // an error loses nothing
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	defer cancel()
	// A create in progress may add a container after the first scan, and the engine may be
	// restarting.
	for quiet := 0; quiet < 3; {
		removed, err := sweepOwner(ctx, c, n.Owner)
		if err == nil && removed == 0 {
			quiet++
		}
		if !sleep.For(250*time.Millisecond, ctx.Done()) {
			return
		}
	}
}

// sweepOwner removes all containers of an owner and returns their number. A container that is
// listed but not known has been removed already.
func sweepOwner(ctx context.Context, c *client.Client, owner string) (int, error) {
	list, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", labelOwner+"="+owner)})
	if err != nil {
		return 0, err
	}
	there := 0
	for _, item := range list.Items {
		known, err := removeOne(ctx, c, item.ID)
		if known {
			there++
		}
		if err != nil {
			return there, fmt.Errorf("removing the container %s: %w", item.ID, err)
		}
	}
	return there, nil
}
