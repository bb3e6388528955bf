package worker

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/callyard/callyard/internal/kit/dirstate"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// warmFor limits how long a container may wait for its holder. The engine measures the lifetime of
// a container from its start, so it would kill an older one while it is in use.
const warmFor = 5 * time.Minute

// contained starts the container of a lease, with exclusive use of the directory.
func (l *leases) contained(ctx context.Context, dir string, env map[string]string) (*session.Single, *sandbox.Container, error) {
	e, err := l.w.engine.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := e.KeepsState(); err != nil {
		return nil, nil, err
	}
	spec, err := l.pinned(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	if err := dirstate.Share(dir); err != nil { // the container's user does not exist on this machine
		return nil, nil, err
	}
	if spec, err = spec.InState(sandbox.State{Dir: dir, Env: env, Placeholder: EpisodeDir, Time: l.set.Time}); err != nil {
		return nil, nil, err
	}
	c, err := e.Start(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	one, err := l.solo.Open(ctx, session.Process{Program: c, Stdin: c.Stdin, Stdout: c.Stdout})
	if err != nil {
		c.Stop(0)
		return nil, nil, schema.Errorf(schema.KindServerFailed, "The server %q did not become ready in its container, which %v: %w.", spec.Server, c.Err(), err)
	}
	l.w.o.Metrics.SandboxStarted(spec.Server)
	return one, c, nil
}

// pinned returns the Spec, pinned to the image that the engine had at the first call.
func (l *leases) pinned(ctx context.Context, e *sandbox.Engine) (sandbox.Spec, error) {
	l.pinning.Lock()
	defer l.pinning.Unlock()
	if l.spec.ImageID() != "" {
		return l.spec, nil
	}
	spec, err := e.Pin(ctx, l.set.Sandbox.Spec)
	if err == nil {
		l.spec = spec
	}
	return spec, err
}

// usable reports whether a warm lease can be assigned to a holder.
func (l *leases) usable(one *lease) bool {
	return one.one.Snapshot().State == schema.StateInitialized && (one.in == nil || time.Since(one.used) < warmFor)
}

// hand assigns a lease to its holder and starts its time limit.
func (l *leases) hand(id string, one *lease) {
	one.used = time.Now()
	if one.in != nil {
		one.in.Limit(one.used.Add(l.set.Time))
	}
	l.open[id] = one
}

// refuses returns the reason why the call of a job must not run in a lease, or nil. A call that
// needs a container must run in one, and the tool must have the same definition there as the one
// that was judged.
func (l *leases) refuses(j *job, one *lease, v *verdict) *schema.Error {
	if one.in == nil {
		if v.sandboxed {
			return schema.Errorf(schema.KindForbidden, "The call must run in a container, and its episode has a process outside one; use isolation sandbox.")
		}
		return nil
	}
	if definition := j.server.definition(j.request.Name); definition == nil || !offers(one.one, definition) {
		return schema.Errorf(schema.KindServerFailed, "The tool %q differs in the container of server %q from the tool that was announced, so the call was not started.", j.request.Name, l.served.Session.Spec.ID)
	}
	return nil
}

// directoryNote is the note for the reaper about the directories of leases.
type directoryNote struct {
	Episodes string `json:"episodes"`
}

func (l *leases) note() string {
	text, err := json.Marshal(directoryNote{l.set.Base})
	if err != nil {
		panic(err) // a string always encodes as JSON
	}
	return string(text)
}

// SweepEpisodes removes the directories of leases that are named in a note of a killed worker. It is
// for [launch.RunReaper], after the containers have been removed. Other notes are ignored.
func SweepEpisodes(note string) {
	var n directoryNote
	if json.Unmarshal([]byte(note), &n) != nil || !filepath.IsAbs(n.Episodes) {
		return
	}
	_ = dirstate.Remove(n.Episodes) // the error cannot be reported; the next start removes the rest
}
