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

// maxSnapshots bounds the snapshots of a manager. The oldest makes room for another one.
const maxSnapshots = 10_000

// snapshot is the state of an episode's servers at some step.
type snapshot struct {
	env     *Environment
	servers map[schema.ServerID]stored
}

// stored is where the state of one server is kept.
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

// snapshots are those of a manager by their names.
type snapshots struct {
	mu    sync.Mutex
	known map[string]*snapshot
	names []string // of known, the oldest first
}

// Snapshot keeps the files of the episode as they are between two steps, and returns the name
// of what was kept, which depends on the files alone. Episodes can begin with it until the
// worker ends or has kept 256 later ones; see [Begin].Snapshot. The error is a *schema.Error: KindConflict after the end
// of the episode, and for one without files of its own.
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

// find returns the snapshot of an environment; nil for the name "". The error is of
// KindNotFound.
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
