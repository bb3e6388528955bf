package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/kit/dirstate"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/worker"
)

// leaseSlack is added to the time limits of an episode for its container, so that the episode ends
// before the container does.
const leaseSlack = time.Minute

// lease configures the worker to lease processes or containers of the servers that environments with
// isolation process or sandbox use, each on a copy of the state directory. The process that
// lists the tools gets a copy as well, so that nothing writes to the original. Each run has a
// separate directory of copies, because the reaper of a killed run may still be removing that run's
// copies.
func (e *environments) lease() (err error) {
	all, err := filepath.Abs(filepath.Join(e.cfg.Data, "episodes"))
	if err == nil {
		err = errors.Join(dirstate.Remove(all), os.MkdirAll(all, 0o700)) // left over from a killed run
	}
	if err == nil {
		e.base, err = os.MkdirTemp(all, "run-")
	}
	if err != nil {
		return fmt.Errorf("making the directory of episodes: %w", err)
	}
	for i := range e.served {
		s := &e.served[i]
		for _, one := range e.file.Sorted() {
			if err := e.leaseFor(one, s); err != nil {
				return err
			}
		}
		if s.Leases == nil {
			continue
		}
		if err := e.listIn(s); err != nil {
			return err
		}
	}
	return nil
}

// leaseFor configures the leases of a server that an environment needs.
func (e *environments) leaseFor(one *episode.Environment, s *worker.Served) error {
	id := s.Session.Spec.ID
	if !one.Uses(string(id)) {
		return nil
	}
	s.Session.Queue += one.Limits.Episodes // each episode has one call at a time, and all may call at once
	if err := checkIsolation(one, s); err != nil {
		return err
	}
	if one.Isolation == episode.IsolationSession { // the session must last as long as its episode
		s.SessionIdle = max(s.SessionIdle, one.Limits.Idle+time.Minute)
	}
	if !one.OwnFiles() {
		return nil
	}
	set := worker.Leases{Spec: s.Session.Spec, StateDir: one.State.Dir, Base: e.base, Seeded: one.State.Seed, Clock: one.Clock}
	if one.Isolation == episode.IsolationSandbox {
		set.Sandbox = s.Sandbox
	}
	if l := s.Leases; l != nil && (l.StateDir != set.StateDir || l.Seeded != set.Seeded || l.Clock != set.Clock || l.Sandbox != set.Sandbox) {
		return fmt.Errorf("the environment %s and another one have different isolations, state directories, seeds or clocks for the server %q; give the server two names in the servers file", one.Name(), id)
	}
	if s.Leases == nil {
		s.Leases = &set
	}
	s.Leases.Warm, s.Leases.Max = max(s.Leases.Warm, one.State.Warm), max(s.Leases.Max, one.State.Episodes)
	s.Leases.Idle = max(s.Leases.Idle, one.Limits.Idle+time.Minute)
	s.Leases.Time = max(s.Leases.Time, one.Limits.Time+one.Limits.CallTime+leaseSlack)
	return nil
}

// listIn gives the process and the container that list the tools of a server one copy of its state
// each.
func (e *environments) listIn(s *worker.Served) error {
	id := string(s.Session.Spec.ID)
	copied := func(kind string) (string, error) {
		dir := filepath.Join(e.base, kind+"-"+id)
		err := os.MkdirAll(dir, 0o700)
		if err == nil && s.Leases.StateDir != "" {
			err = dirstate.Copy(s.Leases.StateDir, dir)
		}
		if err != nil {
			err = fmt.Errorf("copying the state directory of the server %q: %w", id, err)
		}
		return dir, err
	}
	dir, err := copied("shared")
	if err != nil {
		return err
	}
	s.Session.Spec = worker.SpecIn(s.Session.Spec, dir)
	if s.Leases.Sandbox == nil {
		return nil
	}
	if dir, err = copied("contained"); err != nil {
		return err
	}
	if err := dirstate.Share(dir); err != nil {
		return fmt.Errorf("opening the state directory of the server %q to its container: %w", id, err)
	}
	own := *s.Sandbox // do not change the sandbox of the leases
	env := map[string]string{worker.EpisodeVariable: sandbox.StateTarget}
	own.Spec, err = s.Sandbox.Spec.InState(sandbox.State{Dir: dir, Env: env, Placeholder: worker.EpisodeDir})
	s.Sandbox = &own
	return err
}
