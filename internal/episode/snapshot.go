package episode

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// maxSnapshots limits the snapshots of a manager. A new one replaces the oldest.
const maxSnapshots = 10_000

// snapshot is the state of an episode's servers after some step.
type snapshot struct {
	env     *Environment
	servers map[schema.ServerID]stored
}

// stored is the location of the state of one server.
type stored struct {
	worker schema.WorkerID
	digest string
}

func (s *snapshot) digest(server schema.ServerID) string {
	if s == nil {
		return ""
	}
	return s.servers[server].digest
}

func (s *snapshot) worker(server schema.ServerID) schema.WorkerID {
	if s == nil {
		return ""
	}
	return s.servers[server].worker
}

// snapshots holds the snapshots of a manager, by name.
type snapshots struct {
	mu    sync.Mutex
	known map[string]*snapshot
	names []string // keys of known, oldest first
}

// Snapshot stores the current files of the episode, between two steps, and returns the name of the
// snapshot, which depends only on the files. Episodes can start from it until the worker stops or
// has stored 256 later ones; see [Begin].Snapshot. The error is a *schema.Error: KindConflict after
// the end of the episode, or if the episode has no files of its own.
func (ep *Episode) Snapshot(ctx context.Context) (string, error) {
	if !ep.env.OwnFiles() {
		return "", schema.Errorf(schema.KindConflict, "The environment %q has isolation %s; only episodes with isolation process or sandbox have files that a snapshot can keep.", ep.env.name, ep.env.Isolation)
	}
	defer ep.enter()()
	ep.stepping.Lock()
	defer ep.stepping.Unlock()
	if ep.Status().Done {
		return "", errEnded()
	}
	s := &snapshot{env: ep.env, servers: make(map[schema.ServerID]stored)}
	whole := ep.env.name + "\n"
	for _, server := range slices.Sorted(maps.Keys(ep.leases)) {
		l := ep.leases[server]
		text, err := ep.ask(ctx, bus.MethodLeaseSnapshot, server, l)
		if err != nil {
			return "", err
		}
		var sum string
		if err := json.Unmarshal(text, &sum); err != nil {
			return "", schema.Errorf(schema.KindInternal, "The worker's answer about a snapshot cannot be read: %w", err)
		}
		s.servers[server] = stored{l.Worker, sum}
		whole += string(server) + " " + sum + "\n"
	}
	name := schema.Digest([]byte(whole))
	ep.m.snapshots.add(name, s)
	return name, nil
}

func (t *snapshots) add(name string, s *snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = make(map[string]*snapshot)
	}
	switch i := slices.Index(t.names, name); {
	case i >= 0:
		t.names = slices.Delete(t.names, i, i+1)
	case len(t.names) >= maxSnapshots:
		delete(t.known, t.names[0])
		t.names = slices.Delete(t.names, 0, 1)
	}
	t.known[name], t.names = s, append(t.names, name)
}

// find returns a snapshot of the environment, or nil if name is empty. The error is of KindNotFound.
func (t *snapshots) find(e *Environment, name string) (*snapshot, error) {
	if name == "" {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.known[name]; s != nil && s.env == e {
		return s, nil
	}
	return nil, schema.Errorf(schema.KindNotFound, "The environment %q has no snapshot %q.", e.name, name)
}
