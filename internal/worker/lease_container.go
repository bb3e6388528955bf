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

// warmFor is how long a container may wait for its holder. The engine counts its time from its
// start, so that an older one would be killed in the middle of its use.
const warmFor = 5 * time.Minute

// contained starts the container of a lease, which has the directory for itself.
func (l *leases) contained(ctx context.Context, dir string, env map[string]string) (*session.Single, *sandbox.Container, error) {
	e, err := l.w.dock.open(ctx)
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
	if err := dirstate.Share(dir); err != nil { // its user is no user of this machine
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

// pinned is the Spec with the image as the engine had it first.
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

// usable says whether a lease that waited can be given to a holder.
func (l *leases) usable(one *lease) bool {
	return one.one.Snapshot().State == schema.StateInitialized && (one.in == nil || time.Since(one.used) < warmFor)
}

// hand gives a lease to its holder, whose time begins.
func (l *leases) hand(id string, one *lease) {
	one.used = time.Now()
	if one.in != nil {
		one.in.Limit(one.used.Add(l.set.Time))
	}
	l.open[id] = one
}

// refuses says why the call of a job must not run in a lease, nil where it may: what needs a
// container runs in one, and has the definition there that it was judged by.
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

// directoryNote is what the reaper is given about the directories of leases.
type directoryNote struct {
	Episodes string `json:"episodes"`
}

func (l *leases) note() string {
	text, err := json.Marshal(directoryNote{l.set.Base})
	if err != nil {
		panic(err) // a string is always JSON
	}
	return string(text)
}

// SweepEpisodes removes the directories of leases that a note of a killed worker is about. It is
// for [launch.RunReaper], after the containers were removed. A note of something else is passed
// over.
func SweepEpisodes(note string) {
	var n directoryNote
	if json.Unmarshal([]byte(note), &n) != nil || !filepath.IsAbs(n.Episodes) {
		return
	}
	_ = dirstate.Remove(n.Episodes) // there is nobody to tell; the next start removes what is left
}
